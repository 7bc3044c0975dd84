// Combines several launches of one case into one attempt.
#pragma once

#include <vector>

#include "runner/launch.hpp"

namespace syslab::runner {

// `wanted`: how many there should have been. A single launch that was wanted stays as it is. Otherwise:
//
//   samples   all, each with its launch's number
//   metrics   that are the median of a series of their name ("time"): the median of the launches' medians, with an
//             interval that knows that launches differ (stats/launches.hpp). Rates of
//             "time" (a unit that ends in "/s", the same work in each launch) follow it. All others: the median of the
//             launches' values. Each one's note says so.
//   checks    one of each name: tries added up, the worst error with its message, the smallest fraction
//   memory events, kernels, spans and artifacts of the first launch
//   facts     what all agree on (of numbers that add up, the sum; lists united), and each launch's in "launches"
//
// The last launch's status and detail are the attempt's; a bad one says which launch it was.
Launch combined(std::vector<Launch> launches, int wanted);

}  // namespace syslab::runner
