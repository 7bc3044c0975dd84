// Choosing one of several by its name.
#pragma once

#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab {

// A value of an enumeration in the table that gives it its name.
template <typename Value>
struct Named {
  Value value;
  std::string_view name;
};

// "?" for a value that the table has not.
template <std::ranges::input_range Table, typename Value>
constexpr std::string_view name_in(const Table& table, Value value) {
  for (const Named<Value>& one : table) {
    if (one.value == value) return one.name;
  }
  return "?";
}

// The one of `all` with this name: an entry's member `name`, or a value's to_string(). Error(usage) with the nearest
// names if there is none; `what`: as unknown_name() takes it.
template <std::ranges::input_range All>
std::ranges::range_reference_t<const All> find_named(const All& all, std::string_view what, std::string_view name) {
  std::vector<std::string> names;
  for (auto&& one : all) {
    if constexpr (requires { one.name; }) {
      names.emplace_back(one.name);
    } else {
      names.emplace_back(to_string(one));
    }
    if (names.back() == name) return one;
  }
  throw Error(ErrorKind::usage, unknown_name(what, name, names));
}

}  // namespace syslab
