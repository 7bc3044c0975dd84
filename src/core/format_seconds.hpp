#pragma once

#include <string>

namespace syslab {

// As format_duration, of a number that may have come from anywhere: what no duration holds is told as "nan s" or
// "1e+300 s".
std::string format_seconds(double seconds);

}  // namespace syslab
