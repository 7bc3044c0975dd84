#include "measure/resolution.hpp"

#include <algorithm>

#include "stats/summary.hpp"

namespace syslab::measure {

Resolution resolution_of(const Handover& handover, double seconds) {
  constexpr double kMost = 0.5;  // a median of other calls than these is none of them
  Resolution found;
  if (handover.plain.empty() || handover.share_of_calls <= kMost || !(seconds > 0)) return found;
  const stats::Summary plain = stats::summarize(handover.plain);
  found.empty_calls = static_cast<int>(handover.plain.size() + handover.with_results.size());
  found.handover = plain.median;
  found.handover_high = plain.median_95.high;
  found.least = plain.min;
  found.share = found.handover_high / seconds;
  if (!handover.with_results.empty()) {
    const stats::Summary with_results = stats::summarize(handover.with_results);
    found.with_results = with_results.median_95.high;
    found.least_with_results = with_results.min;
    found.least_share_with_results = found.least_with_results / seconds;
    found.share_with_results = std::max(found.with_results / seconds, found.share);
  }
  return found;
}

}  // namespace syslab::measure
