// The time of several ranks working together: a step ends when its last rank is done, so a sample is the longest of all
// ranks' samples of that step (never an average, which would hide the slowest).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "worker/wire/wire.hpp"

namespace syslab::runner {

// Of every series of seconds that all ranks have, equally long, in the order of rank 0: at each position the longest,
// as rank worker::kAllRanks. Empty for records of one rank, and for series with ranks out of step.
std::vector<worker::SampleRecord> slowest_of_ranks(std::span<const worker::Record> records);

// A metric of rank worker::kAllRanks for each of these series of which every rank's metric of that name is the median:
// the median of the slowest, with its interval. Likewise for NAME_mean, _stddev, _min, _q1 and _q3 where every rank
// tells them of its own samples. Where ranks took different numbers of samples, a metric that says so.
std::vector<worker::MetricRecord> metrics_of_all_ranks(std::span<const worker::Record> records);

}  // namespace syslab::runner
