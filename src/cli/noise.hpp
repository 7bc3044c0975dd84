// doctor --noise: identical code against itself on this machine. How often would it be called different, how much do
// launches and blocks differ, and what is the smallest change that a comparison can find here?
#pragma once

#include "cli/verbs.hpp"

namespace syslab::cli {

Exit measure_noise(const Context& context, const DoctorOptions& options);

}  // namespace syslab::cli
