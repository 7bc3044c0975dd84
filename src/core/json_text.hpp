// JSON written and read in one file, json_text.cpp: whatever else includes the library to build or take apart values
// would compile its writer and its parser, too, for a second or two each time.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"

namespace syslab {

// Keys sorted, nothing between the parts: equal for equal values. Throws nlohmann's type_error at bytes that are no
// UTF-8.
std::string json_text(const Json& json);
// The same, with U+FFFD for bytes that are no UTF-8.
std::string repaired_json_text(const Json& json);

// Throws nlohmann's parse_error.
Json parse_json(std::string_view text);
// A value that is_discarded() where the text is no JSON.
Json json_or_discarded(std::string_view text);

}  // namespace syslab
