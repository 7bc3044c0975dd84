// A stranger's text among words of ours: perhaps written so that a terminal that folds the line shows a verdict that
// nobody gave, or so that it seems to end its own quotes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syslab {

// Columns; wide letters count as two. Of a digest, as much as tells it from another.
constexpr std::size_t kShownOfValue = 60, kShownOfDigest = 12;

// A short word of ASCII without blanks and quotation marks, or nothing: no terminal folds it into something else, and
// it ends no quotes.
bool is_plain(std::string_view word);

// The text in “quotes”: one line, with one space for each run of blanks, ' for quotation marks inside, and cut.
std::string in_quotes(std::string_view text, std::size_t at_most = kShownOfValue);

// The same without quotes, for what has words of ours in it, such as a title.
std::string in_one_run(std::string_view text, std::size_t at_most);

}  // namespace syslab
