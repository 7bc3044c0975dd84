// Words for what a series of samples looks like. They label a result; no sample is ever left out because of them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace syslab::stats {

// The labels that fit, in this order:
//   "few_samples"     fewer than 6: no distribution-free 95 % interval of the median exists
//   "bimodal"         from 12 samples: the widest gap in the middle 80 % of the sorted samples exceeds three times the
//                     interquartile range of the samples on either side of it, and 1 % of the median (a clock's tick
//                     between otherwise equal samples is no second mode)
//   "drifting"        from 12 samples: the Theil–Sen slope over the whole run exceeds 1 % of the median, and Kendall's
//                     rank test finds the trend at 1 % (slopes of a few noisy samples are large by chance)
//   "autocorrelated"  from 12 samples: lag-1 autocorrelation, corrected for its bias at small n, exceeds 0.5
std::vector<std::string> noise_labels(std::span<const double> in_time_order);

}  // namespace syslab::stats
