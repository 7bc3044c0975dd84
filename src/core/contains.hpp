// Whether a list holds a value; replaces std::ranges::contains (C++23).
#pragma once

#include <algorithm>

namespace syslab {

template <typename List, typename Value>
bool contains(const List& list, const Value& value) {
  return std::ranges::find(list, value) != std::ranges::end(list);
}

}  // namespace syslab
