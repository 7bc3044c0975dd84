// Makes untrusted text safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syslab {

// The result cannot move the cursor, colour the terminal or change the writing direction: control characters except tab
// and newline become "\\x1b", a carriage return becomes a newline.
std::string printable(std::string_view text);

// At most `at_most` bytes, cut between characters; cut text ends with a note of its full size.
std::string cut_to(std::string text, std::size_t at_most);

}  // namespace syslab
