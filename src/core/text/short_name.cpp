#include "core/text/short_name.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab {

void require_short_name(const std::string& what, const std::string& name) {
  constexpr std::size_t kMostCharacters = 200;
  const std::size_t characters = width_of(name);
  if (characters <= kMostCharacters) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} has {} characters; expected at most {}", what, characters, kMostCharacters));
}

}  // namespace syslab
