// Variables of this process's environment.
#pragma once

#include <cstdlib>
#include <string>

namespace syslab {

// Empty for one that is not set: who writes `NAME= syslab …` means the same.
inline std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace syslab
