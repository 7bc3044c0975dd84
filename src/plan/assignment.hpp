// Converts command-line text to values of an axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/value.hpp"

namespace syslab::plan {

// "1024", "-3", "4k" = 4000, "4Ki" = 4096.
std::optional<std::int64_t> parse_integer(std::string_view text);

// `text` as a value of the type that `like` has; nothing when it is none.
std::optional<Value> typed(std::string_view text, const Value& like);
std::string_view type_name(const Value& like);  // for error messages

}  // namespace syslab::plan
