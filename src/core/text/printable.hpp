// Makes untrusted text safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syslab {

// The result cannot move the cursor, colour the terminal, change the writing direction or hide a sign: what has no
// width, ends a line as U+2028 does or is a control character except tab and newline becomes "\\x1b", its bytes in
// UTF-8; so do combining marks after the eighth on one character. Bytes of no UTF-8 become U+FFFD, "\r" a newline.
std::string printable(std::string_view text);

// A value of a stranger's file among lines of our own, which it could forge: the same in one line. Tabs, newlines and
// carriage returns are escaped as well ("\\x0d").
std::string one_line(std::string_view text);

// Printable text of several lines, of which those after the first begin with `margin`, as no line of our own does.
std::string with_margin(std::string_view text, std::string_view margin);

// A message for standard error, in which no line but the first begins at the first column: what it quotes passes for no
// line of ours. Its last line stays where it is if it begins with "try: ", which ends our own errors.
std::string with_lines_below(std::string_view message);

// JSON whose strings hold the same values, with every such sign as an escape of JSON ("\u202e").
std::string printable_json(std::string_view json);

// Whether the text is UTF-8 that one_line() leaves as it is.
bool is_printable(std::string_view text);
// How many bytes at `at` are a character of that kind; 0: they are none.
std::size_t printable_bytes(std::string_view text, std::size_t at);

// At most `at_most` bytes, cut between characters; cut text ends with a note of its full size.
std::string cut_to(std::string text, std::size_t at_most);

}  // namespace syslab
