// Where this user's keys lie between invocations: $XDG_STATE_HOME/syslab, or ~/.local/state/syslab.
#pragma once

#include <filesystem>

namespace syslab {

// Made with 0700 where it is missing. Error(config) where it cannot be made, is a symbolic link, belongs to somebody
// else or lets anybody else in.
std::filesystem::path state_folder();

}  // namespace syslab
