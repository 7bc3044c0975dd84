#include "core/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace syslab {
namespace {

class NestedTooDeep final : public Json::exception {
 public:
  explicit NestedTooDeep(const std::string& fault) : Json::exception(kId, fault.c_str()) {}

 private:
  static constexpr int kId = 101;  // nlohmann's number of a parse error
};

// Calls are those of nlohmann's parser, which stops at the first that returns false.
class RepeatedKey final : public nlohmann::json_sax<Json> {
 public:
  std::optional<std::string> found;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    found = name;
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the open objects
};

// Brackets in strings do not count.
std::size_t levels_of(std::string_view text) {
  std::size_t level = 0, most = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char sign = text[at];
    if (in_string) {
      if (sign == '\\') ++at;
      if (sign == '"') in_string = false;
    } else if (sign == '"') {
      in_string = true;
    } else if (sign == '[' || sign == '{') {
      most = std::max(most, ++level);
    } else if ((sign == ']' || sign == '}') && level > 0) {
      --level;
    }
  }
  return most;
}

}  // namespace

std::string json_text(const Json& json) { return json.dump(); }

std::string repaired_json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string nesting_fault(std::string_view text) {
  const std::size_t levels = levels_of(text);
  if (levels <= kMostLevels) return {};
  return fmt::format("nested {} levels deep; expected at most {}", levels, kMostLevels);
}

Json parse_json(std::string_view text) {
  if (const std::string fault = nesting_fault(text); !fault.empty()) throw NestedTooDeep("the JSON is " + fault);
  return Json::parse(text);
}

Json json_or_discarded(std::string_view text) {
  if (levels_of(text) > kMostLevels) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::optional<std::string> repeated_key(std::string_view text) {
  RepeatedKey reader;
  Json::sax_parse(text, &reader);
  return reader.found;
}

}  // namespace syslab
