// What too few values cannot tell.
#pragma once

#include <limits>

namespace syslab::stats {

inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

}  // namespace syslab::stats
