// The valid range of a metric by unit. Workers' values are checked on arrival, so that later code can rely on them.
#pragma once

#include <string>
#include <string_view>

#include "worker/wire/wire.hpp"

namespace syslab::worker {

// Empty for a finite number in the range of its unit; otherwise what is wrong: "Infinity s; wanted: from 0 to 3.2e+09
// s". Other units than those of time, memory and rates have no range, and only must be finite.
std::string range_problem(std::string_view unit, double value);

// The metric of one of our own cases, as it may be sent: a value that is not finite is removed, and its note says so.
MetricRecord sendable(MetricRecord metric);

}  // namespace syslab::worker
