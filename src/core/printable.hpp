// Text from elsewhere, made fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syslab {

// No character of it moves a cursor, colours a terminal or turns the direction of writing: control characters but tab
// and newline become "\\x1b", a carriage return a newline.
std::string printable(std::string_view text);

// No more than `at_most` bytes, cut between characters; what was cut says so and how much there was.
std::string cut_to(std::string text, std::size_t at_most);

}  // namespace syslab
