#include "core/value.hpp"
#include "core/text/json_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace syslab {
namespace {

[[noreturn]] void wrong_type(std::string_view name, std::string_view wanted, const Value& found) {
  throw Error(ErrorKind::config, fmt::format("axis '{}' wants {}, found '{}'", name, wanted, to_string(found)));
}

}  // namespace

std::string to_string(const Value& value) {
  struct Visitor {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t integer) const { return std::to_string(integer); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Visitor{}, value);
}

Json to_json_value(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Value value_from_json(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  throw Error(ErrorKind::config,
              fmt::format("an axis value must be a bool, a number or a text, found {}", json_text(json)));
}

const Value& Params::at(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw Error(ErrorKind::internal, fmt::format("this case has no axis '{}' ({})", name, label()));
  }
  return found->second;
}

std::int64_t Params::integer(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  wrong_type(name, "an integer", value);
}

double Params::number(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  wrong_type(name, "a number", value);
}

bool Params::flag(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  wrong_type(name, "true or false", value);
}

const std::string& Params::text(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  wrong_type(name, "a text", value);
}

Json Params::to_json() const {
  Json object = Json::object();
  for (const auto& [name, value] : values_) object[name] = to_json_value(value);
  return object;
}

Params Params::from_json(const Json& json) {
  if (!json.is_object()) throw Error(ErrorKind::config, "case parameters must be a JSON object");
  Params params;
  for (const auto& [name, value] : json.items()) params.set(name, value_from_json(value));
  return params;
}

std::string Params::label() const {
  std::string text;
  for (const auto& [name, value] : values_) {
    if (!text.empty()) text += ' ';
    text += name + "=" + to_string(value);
  }
  return text;
}

}  // namespace syslab
