// Serialises and parses JSON in one file, json_text.cpp, because the library's writer and parser cost every file that
// instantiates them one or two seconds of compile time.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"

namespace syslab {

// Keys sorted, no whitespace: equal text for equal values. Throws nlohmann's type_error for invalid UTF-8.
std::string json_text(const Json& json);
// The same, with U+FFFD for invalid UTF-8.
std::string repaired_json_text(const Json& json);

// Throws nlohmann's parse_error.
Json parse_json(std::string_view text);
// A value with is_discarded() if the text is not JSON.
Json json_or_discarded(std::string_view text);

}  // namespace syslab
