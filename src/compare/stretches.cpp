#include "compare/stretches.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace syslab::cli {

std::vector<Stretch> stretches_of(const std::map<int, stats::Interval>& against_first) {
  std::vector<Stretch> found;
  int from = 0;
  stats::Interval of_from{0, 0};
  for (const auto& [to, of_to] : against_first) {
    found.push_back({from, to, {of_to.low - of_from.high, of_to.high - of_from.low}});
    from = to;
    of_from = of_to;
  }
  return found;
}

std::vector<Stretch> between(const std::vector<Stretch>& stretches, int from, int to) {
  std::vector<Stretch> found;
  std::ranges::copy_if(stretches, std::back_inserter(found),
                       [&](const Stretch& one) { return one.from >= from && one.to <= to; });
  return found;
}

void replace(std::vector<Stretch>& stretches, const Stretch& measured) {
  for (Stretch& one : stretches) {
    if (one.from == measured.from && one.to == measured.to) one.bounds = measured.bounds;
  }
}

bool none_above(const std::vector<Stretch>& stretches, double delta) {
  return std::ranges::all_of(stretches, [&](const Stretch& one) { return one.bounds.high <= std::log1p(delta); });
}

Stretch most_lost(const std::vector<Stretch>& stretches) {
  return *std::ranges::max_element(stretches, {}, [](const Stretch& one) { return one.bounds.high; });
}

std::optional<Stretch> surely_above(const std::vector<Stretch>& stretches, double delta) {
  std::optional<Stretch> found;
  for (const Stretch& one : stretches) {
    if (one.commits() != 1 || one.bounds.low <= std::log1p(delta)) continue;
    if (!found || one.bounds.low > found->bounds.low) found = one;
  }
  return found;
}

std::optional<Stretch> only_candidate(const std::vector<Stretch>& stretches, double delta) {
  std::vector<Stretch> candidates;
  std::ranges::copy_if(stretches, std::back_inserter(candidates),
                       [&](const Stretch& one) { return one.bounds.high > std::log1p(delta); });
  return candidates.size() == 1 && candidates[0].commits() == 1 ? std::optional(candidates[0]) : std::nullopt;
}

}  // namespace syslab::cli
