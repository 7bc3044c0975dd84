#include "report/handout_models.hpp"

#include <algorithm>
#include <map>
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
      if (cell.type != store::Cell::Type::text) continue;
      if (const auto name = models->names.find(cell.text); name != models->names.end()) cell.text = name->second;
    }
  }
}

}  // namespace syslab::report
