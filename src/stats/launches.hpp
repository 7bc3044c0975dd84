// The figure of an attempt made of K fresh launches: the median of the launches' medians, and an interval that knows
// that launches differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stats/summary.hpp"

namespace syslab::stats {

struct LaunchesSummary {
  std::int64_t launches = 0, samples = 0;
  double median = 0;              // of the launches' medians
  Interval median_95;             // of `median`
  std::vector<double> medians;    // one a launch, in the order given
  bool between_launches = false;  // false with one launch: median_95 then knows nothing of launch variance
};

// `launches`: the samples of each launch in time order; empty launches are left out. With one launch the interval is
// median_interval's. With more, a bootstrap seeded by `seed` draws launches with replacement and then samples within
// each drawn launch (in time order by circular blocks, so that samples that hang together stay together), takes the
// median of medians, and the standard deviation s of 2,000 such figures gives median ± t(97.5 %, K − 1) · √(K / (K −
// 1)) · s, on a logarithmic scale where all samples are positive. The t and the root are there because K is small:
// percentiles of the bootstrap itself cannot reach beyond the K medians seen. Wide for K = 2 (t = 12.7), and honestly
// so.
LaunchesSummary summarize_launches(std::span<const std::vector<double>> launches, std::uint64_t seed);

}  // namespace syslab::stats
