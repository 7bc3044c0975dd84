// What a number of a unit can be. Numbers of workers are checked where they come in: nobody behind has to fear them.
#pragma once

#include <string>
#include <string_view>

#include "worker/protocol.hpp"

namespace syslab::worker {

// Empty for a finite number in the range of its unit; else what is wrong: "Infinity s; wanted: from 0 to 3.2e+09 s".
// Other units than those of time, memory and rates have no range, and only must be finite.
std::string range_problem(std::string_view unit, double value);

// What one of our own cases found, as it may be sent: without a value that is no number, which its note tells.
MetricRecord sendable(MetricRecord metric);

}  // namespace syslab::worker
