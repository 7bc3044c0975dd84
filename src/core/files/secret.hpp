// This user's keys, each a file of 32 random bytes in the state folder (core/files/state_folder.hpp).
//
//   const Key key = secret("launch"); // created at first use; then the same in every process of this user
#pragma once

#include <string_view>

#include "core/files/mac.hpp"

namespace syslab {

// `name`: letters, digits, '-' and '_'. Processes that create it at the same time get the same key, and no process ever
// reads a partial one. Error(config) if the file is a symbolic link, not a plain file of 32 bytes, owned by somebody
// else, or readable by others.
Key secret(std::string_view name);

}  // namespace syslab
