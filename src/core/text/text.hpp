// Small text tools: globs, nearest names for error messages, splitting.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syslab {

bool glob_match(std::string_view pattern, std::string_view text);  // * and ?
std::vector<std::string> split(std::string_view text, char separator);
std::string trim(std::string_view text);
std::string first_line(std::string_view text);  // without its end
// "3 cases", "1 case", "2 properties".
std::string counted(std::int64_t count, std::string_view noun);
// Display width of text without combining marks or wide letters: counts the UTF-8 bytes that begin a character.
std::size_t width_of(std::string_view text);
// The word as it must be typed: in single quotes if a shell would interpret it.
std::string shell_word(const std::string& word);

// Up to `count` candidates nearest to `word` by edit distance, nearest first; empty if none is plausible.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, std::size_t count = 3);

// "unknown axis 'sek'; did you mean 'seq'? (known: dtype, seq)"; of "axis of gemm": "unknown axis 'sek' of gemm; …".
// In one line, whatever the word holds.
std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string> candidates);

}  // namespace syslab
