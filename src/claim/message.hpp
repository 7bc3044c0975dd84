// Messages that may repeat words of a claim's file, such as why its question cannot be planned or why a case has no
// time. They have such words in single quotes, or in none.
#pragma once

#include <string>
#include <string_view>

#include "claim/claim_file.hpp"

namespace syslab::claim {

// The message as it is, in one run, where each word of the file that it can repeat is plain (is_plain). Otherwise all
// of it is in_quotes(): a stranger's words may end quotes that the message gives them, but not these.
std::string shown_message(const File& file, std::string_view message);

}  // namespace syslab::claim
