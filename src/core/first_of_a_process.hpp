// An option of a call to an implementation in another process, for whoever starts that process: the call is to be the
// first that it is asked. It does not reach the implementation.
#pragma once

#include <string_view>

namespace syslab {

inline constexpr std::string_view kFirstOfAProcess = "first_of_a_process";

}  // namespace syslab
