// Which bytes are a character of UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace syslab {

// Length of the well-formed sequence that `text` begins with (Unicode 15, table 3-7); 0 where there is none, and of
// NUL.
std::size_t utf8_sequence_length(std::string_view text);

bool is_utf8(std::string_view text);  // without NUL

}  // namespace syslab
