// Values of axes and presets, as experiments write them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.hpp"

namespace syslab::registry {

inline Value text(std::string_view value) { return std::string(value); }
inline Value number(std::int64_t value) { return value; }

inline std::vector<Value> texts(const std::vector<std::string>& words) { return {words.begin(), words.end()}; }
inline std::vector<Value> numbers(const std::vector<std::int64_t>& list) { return {list.begin(), list.end()}; }

}  // namespace syslab::registry
