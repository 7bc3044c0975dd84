#include "report/sql_header.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"

namespace syslab::report {

SqlFile read_sql_header(const std::string& what, const std::string& text) {
  const auto malformed = [&](std::size_t line, const std::string& why) {
    throw Error(ErrorKind::internal, fmt::format("{}, line {}: {}", what, line, why));
  };
  SqlFile file;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (!file.sql.empty() || line.rfind("--", 0) != 0) {
      if (!file.sql.empty() || !trim(line).empty()) file.sql += line + "\n";
      continue;
    }
    const std::string content = trim(std::string_view(line).substr(2));
    if (line.rfind("--   ", 0) == 0) {
      if (file.fields.empty()) malformed(number, "a continuation line follows no header");
      file.fields.back().value += " " + content;
      continue;
    }
    const std::size_t colon = content.find(':');
    if (colon == std::string::npos) malformed(number, "a header line reads '-- key: value'");
    file.fields.push_back({trim(content.substr(0, colon)), trim(content.substr(colon + 1)), number});
  }
  while (!file.sql.empty() && file.sql.back() == '\n') file.sql.pop_back();
  file.lines = number;
  return file;
}

SqlFile read_sql_file(const std::string& what, const std::string& text) {
  SqlFile file = read_sql_header(what, text);
  if (file.sql.empty()) {
    throw Error(ErrorKind::internal, fmt::format("{}, line {}: no SELECT follows the header", what, file.lines));
  }
  return file;
}

std::vector<std::string> parts_filled(const std::string& value) {
  std::vector<std::string> parts;
  for (const std::string& part : split(value, ',')) parts.push_back(trim(part));
  return parts;
}

}  // namespace syslab::report
