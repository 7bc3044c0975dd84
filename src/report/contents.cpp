#include "report/contents.hpp"

namespace syslab::report {

std::vector<ListedSection> contents_of(const Document& document) {
  std::vector<ListedSection> sections;
  for (const Block& block : document.blocks) {
    const auto* heading = std::get_if<Heading>(&block);
    if (heading == nullptr || heading->listed.title.empty()) continue;
    const std::string& section = heading->listed.section;
    if (sections.empty() || sections.back().name != section) sections.push_back({section, {}});
    sections.back().problems.push_back(heading);
  }
  return sections;
}

}  // namespace syslab::report
