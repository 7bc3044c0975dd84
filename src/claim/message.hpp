// Messages that may repeat words of a claim's file, such as why its question cannot be planned or why a case has no
// time. They have such words in single quotes, or in none.
#pragma once

#include <string>
#include <string_view>

#include "claim/claim_file.hpp"

namespace syslab::claim {

// None of the file's words that a message can repeat needs quotes (is_plain).
bool has_plain_words_alone(const File& file);

// The message as it is, in one run, if the file has plain words alone. Otherwise all of it is in_quotes(): a stranger's
// words may end quotes that the message gives them, but not these.
std::string shown_message(const File& file, std::string_view message);

}  // namespace syslab::claim
