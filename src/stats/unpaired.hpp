// The ratio of two stored series that were not measured in turns (`diff`): weaker than a paired comparison, for
// whatever the machine did between the two runs is in the ratio and not in the interval.
#pragma once

#include <cstdint>
#include <span>

#include "stats/summary.hpp"

namespace syslab::stats {

struct UnpairedEstimate {
  std::int64_t launches_a = 0, launches_b = 0;
  double log_ratio = 0;       // mean log median of B's launches − that of A's
  Interval interval_95;       // of log_ratio; NaN with fewer than three launches on either side: verdict() is `unclear`
  double standard_error = 0;  // NaN likewise
  double dof = 0;             // Welch–Satterthwaite; NaN likewise
  double p_t = 1;             // two-sided, H0: log ratio 0; NaN likewise
};

// One median a launch and side, all positive, in one unit. Welch's t interval over their logarithms, with
// Satterthwaite's degrees of freedom: the two runs need not have equally many launches, nor be equally noisy. Throws
// Error(usage) on an empty side and on a median that is not positive and finite.
UnpairedEstimate unpaired_estimate(std::span<const double> launch_medians_a, std::span<const double> launch_medians_b,
                                   double confidence = 0.95);

// As in paired.hpp: p of H0 |log ratio| ≤ log(1 + delta), for a sweep.
double p_beyond(const UnpairedEstimate& estimate, double delta);

}  // namespace syslab::stats
