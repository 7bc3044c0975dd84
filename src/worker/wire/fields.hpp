// Reads the fields of another program's message: each accessor reports which field of which message is wrong, what was
// expected and what was found. Everything throws Error(comm).
//
// Numbers that JSON cannot hold travel as the texts "NaN", "Infinity" and "-Infinity".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"

namespace syslab::worker {

Json number_to_json(double value);

class Fields {
 public:
  // `what` names the message in errors: "record 'metric'". `json` must outlive the object.
  Fields(const Json& json, std::string what);

  [[noreturn]] void fail(const std::string& reason) const;

  std::string text(const char* name) const;
  std::string text_or(const char* name, std::string fallback) const;
  std::string one_of(const char* name, std::span<const std::string_view> words) const;
  std::int64_t integer(const char* name) const;
  std::int64_t integer_or(const char* name, std::int64_t fallback) const;
  int count_or(const char* name, int fallback) const;  // an integer in [0, 2³¹)
  bool flag_or(const char* name, bool fallback) const;
  std::optional<std::int64_t> optional_integer(const char* name) const;
  std::uint64_t unsigned_text(const char* name) const;  // 64 bits as a decimal text (or a number)
  std::optional<double> optional_number(const char* name) const;
  std::vector<double> numbers(const char* name) const;
  std::vector<std::int64_t> integers_or_none(const char* name) const;
  const Json& object(const char* name) const;
  std::string object_or_none(const char* name) const;  // as text; empty when absent

 private:
  const Json* find(const char* name) const;  // null when absent or JSON null
  const Json& need(const char* name, const char* wanted) const;
  [[noreturn]] void wrong(const char* name, const char* wanted, const Json& found) const;

  const Json& json_;
  std::string what_;
};

}  // namespace syslab::worker
