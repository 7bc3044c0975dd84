// Text that is certain to be UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace syslab::store {

// Nothing when `text` is valid UTF-8 without NUL; else a copy with U+FFFD in place of each byte that is not part of a
// well-formed sequence (Unicode 15, table 3-7), and of each NUL, at which SQL functions would stop.
std::optional<std::string> repaired_utf8(std::string_view text);

}  // namespace syslab::store
