// Which pass of an operator is meant.
#pragma once

#include <string_view>

namespace syslab::ops {

enum class Direction { forward, backward };

constexpr std::string_view to_string(Direction direction) {
  return direction == Direction::forward ? "forward" : "backward";
}

}  // namespace syslab::ops
