// Reads times as utc_now() (core/text/units.hpp) writes them.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace syslab {

// The second of what utc_now() wrote, with a fraction or without; nothing for any other text.
std::optional<std::chrono::sys_seconds> utc_from(std::string_view text);

}  // namespace syslab
