#include "stats/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/error.hpp"

namespace syslab::stats {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::same:
      return "same";
    case Verdict::unclear:
      return "unclear";
    case Verdict::incomparable:
      return "incomparable";
  }
  throw Error(ErrorKind::internal, "a verdict without a name: " + std::to_string(static_cast<int>(verdict)));
}

std::optional<Verdict> verdict_of(std::string_view word) {
  constexpr std::array kVerdicts{Verdict::faster, Verdict::slower, Verdict::same, Verdict::unclear,
                                 Verdict::incomparable};
  const auto found = std::ranges::find(kVerdicts, word, [](Verdict verdict) { return to_string(verdict); });
  return found == kVerdicts.end() ? std::nullopt : std::optional(*found);
}

Verdict swapped(Verdict verdict) {
  return verdict == Verdict::slower ? Verdict::faster : verdict == Verdict::faster ? Verdict::slower : verdict;
}

Verdict verdict(Interval log_ratio_95, double delta) {
  const double margin = std::log1p(delta);
  if (log_ratio_95.low > margin) return Verdict::slower;
  if (log_ratio_95.high < -margin) return Verdict::faster;
  if (log_ratio_95.low >= -margin && log_ratio_95.high <= margin) return Verdict::same;
  return Verdict::unclear;
}

double default_delta(double seconds_of_a) { return seconds_of_a < 20e-6 ? 0.02 : 0.01; }

std::vector<double> benjamini_hochberg(std::span<const double> p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!std::isnan(p[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.begin(), p.end());
  double smallest = 1;
  for (std::size_t rank = order.size(); rank > 0; --rank) {
    const std::size_t i = order[rank - 1];
    smallest = std::min(smallest, p[i] * (static_cast<double>(order.size()) / static_cast<double>(rank)));
    adjusted[i] = smallest;
  }
  return adjusted;
}

}  // namespace syslab::stats
