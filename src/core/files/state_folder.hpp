// Where this user's keys are kept between invocations: $XDG_STATE_HOME/syslab, or ~/.local/state/syslab.
#pragma once

#include <filesystem>
#include <vector>

namespace syslab {

// Nothing is created. Error(config) where neither variable nor the user's home names a place.
std::filesystem::path state_folder_path();

// Each place that may hold this user's keys, whatever the variables say now: the one in use, and those of HOME and of
// the user's home without XDG_STATE_HOME. Nothing is created; empty where there is none.
std::vector<std::filesystem::path> state_folder_paths();

// Created with mode 0700 if missing. Error(config) if it cannot be created, is a symbolic link, belongs to somebody
// else or is accessible to others.
std::filesystem::path state_folder();

}  // namespace syslab
