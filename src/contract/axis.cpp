#include "contract/axis.hpp"

#include <algorithm>

namespace syslab {

bool Axis::accepts(const Value& value) const {
  if (values.empty() || value.index() != values.front().index()) return false;
  const auto negative = [](const Value& one) {
    const auto* whole = std::get_if<std::int64_t>(&one);
    return whole != nullptr && *whole < 0;
  };
  if (negative(value) && std::none_of(values.begin(), values.end(), negative)) return false;
  if (!closed) return true;
  return std::find(values.begin(), values.end(), value) != values.end() ||
         std::find(also.begin(), also.end(), value) != also.end();
}

bool Axis::names_file(const Value& value) const {
  const auto is_declared = [&](const Values& list) { return std::find(list.begin(), list.end(), value) != list.end(); };
  return kind == AxisKind::file && !is_declared(values) && !is_declared(also);
}

}  // namespace syslab
