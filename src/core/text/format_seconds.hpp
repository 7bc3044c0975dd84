#pragma once

#include <string>

namespace syslab {

// As format_duration, for any double: values that no duration can hold read "nan s" or "1e+300 s".
std::string format_seconds(double seconds);

}  // namespace syslab
