// Where this user's keys are kept between invocations: $XDG_STATE_HOME/syslab, or ~/.local/state/syslab.
#pragma once

#include <filesystem>

namespace syslab {

// Nothing is created. Error(config) where neither variable nor the user's home names a place.
std::filesystem::path state_folder_path();

// Created with mode 0700 if missing. Error(config) if it cannot be created, is a symbolic link, belongs to somebody
// else or is accessible to others.
std::filesystem::path state_folder();

}  // namespace syslab
