// Words of a picture, fitted to its width: gnuplot measures no text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syslab::report {

std::size_t characters(std::string_view text);  // of UTF-8

// At most so many characters, the last of them an ellipsis where some are missing.
std::string fitted(const std::string& text, std::size_t most);

// A text of parts between commas in lines of at most so many characters, and of lines so many.
std::vector<std::string> in_lines(const std::string& text, std::size_t most, std::size_t most_lines);

}  // namespace syslab::report
