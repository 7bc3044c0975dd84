#include "worker/wire/fields.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"

namespace syslab::worker {
namespace {

std::optional<double> number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

std::string excerpt(const Json& json) {
  std::string text = repaired_json_text(json);
  if (text.size() > 60) text = text.substr(0, 60) + "…";
  return text;
}

}  // namespace

Json number_to_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Fields::Fields(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
  if (!json.is_object()) fail(fmt::format("expected a JSON object, found {}", excerpt(json)));
}

void Fields::fail(const std::string& reason) const {
  throw Error(ErrorKind::comm, fmt::format("{}: {}", what_, reason));
}

void Fields::wrong(const char* name, const char* wanted, const Json& found) const {
  fail(fmt::format("field '{}' must be {}, found {}", name, wanted, excerpt(found)));
}

const Json* Fields::find(const char* name) const {
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::need(const char* name, const char* wanted) const {
  const Json* found = find(name);
  if (found == nullptr) fail(fmt::format("field '{}' is missing (wanted {})", name, wanted));
  return *found;
}

std::string Fields::text(const char* name) const {
  const Json& found = need(name, "a text");
  if (!found.is_string()) wrong(name, "a text", found);
  return found.get<std::string>();
}

std::string Fields::text_or(const char* name, std::string fallback) const {
  return find(name) == nullptr ? std::move(fallback) : text(name);
}

std::string Fields::one_of(const char* name, std::span<const std::string_view> words) const {
  std::string found = text(name);
  std::string known;
  for (const std::string_view word : words) {
    if (found == word) return found;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
  }
  fail(fmt::format("field '{}' must be one of {}, found \"{}\"", name, known, found));
}

std::int64_t Fields::integer(const char* name) const {
  const Json& found = need(name, "an integer");
  const bool too_large = found.is_number_unsigned() && found.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  if (!found.is_number_integer() || too_large) wrong(name, "a 64-bit integer", found);
  return found.get<std::int64_t>();
}

std::int64_t Fields::integer_or(const char* name, std::int64_t fallback) const {
  return find(name) == nullptr ? fallback : integer(name);
}

int Fields::count_or(const char* name, int fallback) const {
  const std::int64_t value = integer_or(name, fallback);
  if (value < 0 || value > INT32_MAX) wrong(name, "an integer from 0 to 2147483647", *find(name));
  return static_cast<int>(value);
}

bool Fields::flag_or(const char* name, bool fallback) const {
  const Json* const found = find(name);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) wrong(name, "true or false", *found);
  return found->get<bool>();
}

std::optional<std::int64_t> Fields::optional_integer(const char* name) const {
  if (find(name) == nullptr) return std::nullopt;
  return integer(name);
}

std::uint64_t Fields::unsigned_text(const char* name) const {
  const Json& found = need(name, "an unsigned number as text");
  if (found.is_number_unsigned()) return found.get<std::uint64_t>();
  if (found.is_string()) {
    const auto& digits = found.get_ref<const std::string&>();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && end == digits.data() + digits.size()) return value;
  }
  wrong(name, "an unsigned 64-bit number as text", found);
}

std::optional<double> Fields::optional_number(const char* name) const {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  const std::optional<double> value = number_of(*found);
  if (!value) wrong(name, "a number (or \"NaN\", \"Infinity\", \"-Infinity\")", *found);
  return value;
}

std::vector<double> Fields::numbers(const char* name) const {
  const Json& found = need(name, "a list of numbers");
  if (!found.is_array()) wrong(name, "a list of numbers", found);
  std::vector<double> values;
  values.reserve(found.size());
  for (const Json& item : found) {
    const std::optional<double> value = number_of(item);
    if (!value) wrong(name, "a list of numbers", item);
    values.push_back(*value);
  }
  return values;
}

std::vector<std::int64_t> Fields::integers_or_none(const char* name) const {
  const Json* found = find(name);
  if (found == nullptr) return {};
  if (!found->is_array()) wrong(name, "a list of integers", *found);
  std::vector<std::int64_t> values;
  for (const Json& item : *found) {
    if (!item.is_number_integer()) wrong(name, "a list of integers", item);
    values.push_back(item.get<std::int64_t>());
  }
  return values;
}

const Json& Fields::object(const char* name) const {
  const Json& found = need(name, "an object");
  if (!found.is_object()) wrong(name, "an object", found);
  return found;
}

std::string Fields::object_or_none(const char* name) const {
  return find(name) == nullptr ? std::string() : json_text(object(name));
}

}  // namespace syslab::worker
