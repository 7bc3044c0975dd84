// What a caller left empty is NULL in the database.
#pragma once

#include <optional>
#include <string>

namespace syslab::store {

inline std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace syslab::store
