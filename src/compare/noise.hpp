// doctor --noise: identical code against itself on this machine. How often would it be called different, how much do
// launches and blocks differ, and what is the smallest change that a comparison can find here?
#pragma once

#include "session/context.hpp"

namespace syslab::cli {

Exit measure_noise(const Context& context, const std::string& budget_text);

}  // namespace syslab::cli
