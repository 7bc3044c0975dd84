// A user's shared library that exports syslab.h, as an ordinary rung.
#pragma once

#include <filesystem>
#include <string>

#include "ops/attention/attention.hpp"

namespace syslab::capi {

// Opens the library and looks its functions up. Error(usage) says which function is missing, which ABI was found and
// which is expected, or why the loader refused it. The library stays open for the life of the process. `kind`: what
// memory it is handed; of a GPU, with a stream of it.
attention::Rung load_attention_plugin(const std::string& name, const std::filesystem::path& library,
                                      device::Kind kind = device::Kind::cpu);

}  // namespace syslab::capi
