// Serialises and parses JSON in one file, json_text.cpp, because the library's writer and parser cost every file that
// instantiates them one or two seconds of compile time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/json.hpp"

namespace syslab {

// Keys sorted, no whitespace: equal text for equal values. Throws nlohmann's type_error for invalid UTF-8.
std::string json_text(const Json& json);
// The same, with U+FFFD for invalid UTF-8.
std::string repaired_json_text(const Json& json);

// Objects and lists may nest at most this deep in text that is read: copying, comparing and serialising a value use
// stack for each level, and so does a database's parser.
inline constexpr std::size_t kMostLevels = 100;
// "" unless the text nests deeper, else "nested 50000 levels deep; expected at most 100".
std::string nesting_fault(std::string_view text);

// Throws an exception of nlohmann's if the text is not JSON or nests too deep.
Json parse_json(std::string_view text);
// A value with is_discarded() if the text is not JSON or nests too deep.
Json json_or_discarded(std::string_view text);

// The first key that an object of the text has twice. Readers differ in which of the two values they keep. Nothing if
// there is none, or the text is not JSON.
std::optional<std::string> repeated_key(std::string_view text);

// "" if the text is a JSON object in which each key occurs once, else what is wrong: "not UTF-8 (byte 0xe4 in line 1,
// column 6); expected a JSON object". Of a text of one line only the column is named.
std::string object_fault(std::string_view text);

}  // namespace syslab
