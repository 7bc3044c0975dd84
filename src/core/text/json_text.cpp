#include "core/text/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/text/printable.hpp"
#include "core/text/utf8.hpp"

namespace syslab {
namespace {

class NestedTooDeep final : public Json::exception {
 public:
  explicit NestedTooDeep(const std::string& fault) : Json::exception(kId, fault.c_str()) {}

 private:
  static constexpr int kId = 101;  // nlohmann's number of a parse error
};

// Calls are those of nlohmann's parser, which stops at the first that returns false.
class FaultReader final : public nlohmann::json_sax<Json> {
 public:
  // Where the text stops being JSON.
  struct Stop {
    std::size_t bytes = 0;  // that were read
    std::string token;
    std::string why;  // as nlohmann says it
    bool beyond_fp64 = false;
  };
  std::optional<std::string> repeated;
  std::optional<Stop> stop;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t bytes, const std::string& token, const nlohmann::detail::exception& error) override {
    stop = Stop{bytes, token, error.what(), error.id == kOverflow};
    return false;
  }
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
    repeated = name;
    return false;
  }

 private:
  static constexpr int kOverflow = 406;      // nlohmann's number for a number beyond fp64
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

constexpr std::size_t kMostQuoted = 60;  // bytes of what a message repeats of the text

// The first byte that begins no character; the size of the text if there is none. NUL is UTF-8, and not JSON.
std::size_t first_not_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = text[at] == '\0' ? 1 : utf8_sequence_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

// "line 3, column 5", both counted from 1 and columns in characters.
std::string place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::string_view of_line = before.substr(before.rfind('\n') + 1);
  const auto column = 1 + std::ranges::count_if(of_line, [](char byte) { return (byte & 0xc0) != 0x80; });
  const bool one_line_only = text.find('\n') >= text.size() - 1;
  return one_line_only ? fmt::format("column {}", column) : fmt::format("line {}, column {}", line, column);
}

// nlohmann's "[json.exception…] parse error at line 1, column 5: syntax error while parsing value - invalid literal;
// last read: 'N'" without what is said here.
std::string reason_in(const std::string& what) {
  const std::size_t dash = what.find(" - ");
  const std::string reason = dash == std::string::npos ? what : what.substr(dash + 3);
  return one_line(reason.substr(0, reason.find("; last read")));
}

std::string words_of(const FaultReader::Stop& stop, std::string_view text) {
  const std::string token = cut_to(one_line(stop.token), kMostQuoted);
  const std::string place = place_of(text, std::min(stop.bytes > 0 ? stop.bytes - 1 : 0, text.size()));
  if (stop.beyond_fp64) {
    return fmt::format("no JSON that syslab reads: the number {} ({}) is beyond fp64; expected at most 1.8e308", token,
                       place);
  }
  return fmt::format("no JSON from {} on (at '{}'): {}", place, token, reason_in(stop.why));
}

const char* kind_of(const Json& json) {
  if (json.is_array()) return "a list";
  if (json.is_string()) return "a text";
  if (json.is_number()) return "a number";
  return json.is_null() ? "null" : "true or false";
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
  FaultReader reader;
  Json::sax_parse(text, &reader);
  return reader.repeated;
}

std::string object_fault(std::string_view text) {
  const std::string_view blank = " \t\r\n";
  if (text.find_first_not_of(blank) == std::string_view::npos) return "empty; expected a JSON object";
  if (const std::size_t at = first_not_utf8(text); at < text.size()) {
    return fmt::format("not UTF-8 (byte 0x{:02x} in {}); expected a JSON object", static_cast<unsigned char>(text[at]),
                       place_of(text, at));
  }
  if (const std::string fault = nesting_fault(text); !fault.empty()) return fault;
  FaultReader reader;
  Json::sax_parse(text, &reader);
  if (reader.stop) return words_of(*reader.stop, text);
  if (reader.repeated) {
    return fmt::format("an object that has the key '{}' twice; expected each key once",
                       cut_to(one_line(*reader.repeated), kMostQuoted));
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? "" : fmt::format("{}; expected a JSON object", kind_of(json));
}

}  // namespace syslab
