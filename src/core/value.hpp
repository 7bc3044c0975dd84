// The value of an axis, and the set of values that names a case.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "core/text/json.hpp"

namespace syslab {

// bool before int64: a JSON `true` must not turn into 1.
using Value = std::variant<bool, std::int64_t, double, std::string>;

std::string to_string(const Value& value);  // "true", "1024", "0.5", "bf16"
Json to_json_value(const Value& value);
Value value_from_json(const Json& json);  // throws Error(config) for null, arrays, objects

// Axis name → value, sorted by name, so that equal cases have equal text.
class Params {
 public:
  Params() = default;
  Params(std::initializer_list<std::pair<const std::string, Value>> values) : values_(values) {}

  void set(std::string name, Value value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  const Value& at(std::string_view name) const;  // Error(internal) naming the axis if absent

  // Typed access; throws Error(config) when the value has another type, naming the axis.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;  // accepts integers
  bool flag(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::size_t size() const { return values_.size(); }
  bool operator==(const Params&) const = default;

  Json to_json() const;  // an object, keys sorted, values typed: canonical
  static Params from_json(const Json& json);
  std::string label() const;  // "causal=true dtype=bf16 seq=1024": for people

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace syslab
