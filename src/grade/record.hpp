// Small readers of a submission's record.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "core/json.hpp"

namespace syslab::grade {

// The text of that name; empty where there is none.
inline std::string text_field(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

inline double hundredths(double points) { return std::round(points * 100) / 100; }

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace syslab::grade
