#include "report/handout_models.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "report/cells.hpp"

namespace syslab::report {
namespace {

// Models that one hand-out asks for by a name of its own, and those that it does not ask for: at all, or of several
// ranks.
struct Models {
  std::map<std::string, std::string> names;
  std::set<std::string> others, others_of_ranks;
};

const Models* models_of(const std::string& handout) {
  static const std::map<std::string, Models> kModels{
      {"2025", {{{"xl25", "xl"}, {"xl26", "2.7B"}}, {"10B"}, {"10B", "xl26"}}},
      {"2026", {{{"xl26", "xl"}}, {"xl25"}, {"xl25"}}}};
  const auto found = kModels.find(handout);
  return found == kModels.end() ? nullptr : &found->second;
}

// "small, xl25, xl26, 10B" as the hand-out has it: under its names, without what it does not ask for.
std::string in_words_of(const Models& models, std::string text) {
  static const std::regex kModel(R"((, )?\b(xl25|xl26|10B)\b)");
  if (text.find("xl2") == text.npos && text.find("10B") == text.npos) return text;  // nearly all: regexes are slow
  std::string made;
  auto from = text.cbegin();
  for (std::smatch found; std::regex_search(from, text.cend(), found, kModel); from = found.suffix().first) {
    made.append(from, found.prefix().second);
    const bool is_listed = found[1].matched;
    if (is_listed && models.others.contains(found[2])) continue;
    const auto name = models.names.find(found[2]);
    made += found[1].str() + (name == models.names.end() ? found[2].str() : name->second);
  }
  return made.append(from, text.cend());
}

}  // namespace

void keep_models_of(const std::string& handout, store::ResultSet& result) {
  const Models* models = models_of(handout);
  if (models == nullptr) return;
  if (const auto model = find_column(result, "model")) {
    const std::set<std::string>& others = find_column(result, "ranks") ? models->others_of_ranks : models->others;
    const auto is_other = [&](const auto& row) { return others.contains(plain(row[*model])); };
    if (!std::ranges::all_of(result.rows, is_other)) std::erase_if(result.rows, is_other);
  }
  for (auto& row : result.rows) {
    for (store::Cell& cell : row) {
      if (cell.type == store::Cell::Type::text) cell.text = in_words_of(*models, std::move(cell.text));
    }
  }
}

}  // namespace syslab::report
