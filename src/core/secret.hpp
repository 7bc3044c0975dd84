// Keys of this user, each a file of 32 random bytes in the state folder (core/state_folder.hpp).
//
//   const Key key = secret("launch");   // made at first use; the same from then on, in every process of this user
#pragma once

#include <string_view>

#include "core/mac.hpp"

namespace syslab {

// `name`: letters, digits, '-' and '_'. Two processes that make it at once get the same one, and nobody ever sees half
// of it. Error(config) where the file is a symbolic link, is no plain file of 32 bytes, belongs to somebody else, or
// may be read by others.
Key secret(std::string_view name);

}  // namespace syslab
