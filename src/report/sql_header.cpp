#include "report/sql_header.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"

namespace syslab::report {

namespace {

[[noreturn]] void malformed_line(const std::string& what, std::size_t line, const std::string& why) {
  throw Error(ErrorKind::internal, fmt::format("{}, line {}: {}", what, line, why));
}

// There may be no SELECT.
SqlFile read_header(const std::string& what, const std::string& text) {
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
      if (file.fields.empty()) malformed_line(what, number, "a continuation line follows no header");
      file.fields.back().value += " " + content;
      continue;
    }
    const std::size_t colon = content.find(':');
    if (colon == std::string::npos) malformed_line(what, number, "a header line reads '-- key: value'");
    file.fields.push_back({trim(content.substr(0, colon)), trim(content.substr(colon + 1)), number});
  }
  while (!file.sql.empty() && file.sql.back() == '\n') file.sql.pop_back();
  file.lines = number;
  return file;
}

void require_select(const std::string& what, const SqlFile& file) {
  if (file.sql.empty()) malformed_line(what, file.lines, "no SELECT follows the header");
}

// The file that a header line names as experiment/name.
SqlFile named_file(const std::string& what, const std::string& folder, const HeaderField& field) {
  const std::size_t slash = field.value.find('/');
  const std::string path =
      fmt::format("experiments/{}/{}/{}.sql", field.value.substr(0, slash), folder, field.value.substr(slash + 1));
  const auto text = find_resource(path);
  if (slash == std::string::npos || !text) {
    malformed_line(what, field.line, fmt::format("there is no {}; '{}' reads experiment/name", path, field.key));
  }
  SqlFile file = read_header(path, std::string(*text));
  require_select(path, file);
  return file;
}

void begin_with(SqlFile& file, const std::string& what, const HeaderField& field, const std::string& other) {
  const std::size_t select = other.find("\nSELECT ");
  if (other.rfind("WITH ", 0) != 0 || select == std::string::npos) {
    malformed_line(what, field.line, fmt::format("{} has no WITH, and a SELECT at the margin behind it", field.value));
  }
  file.sql = other.substr(0, select) + (file.sql.rfind("SELECT ", 0) == 0 ? "\n" : ",\n") + file.sql;
}

}  // namespace

bool is_about(const HeaderField& field) { return field.key == "about" || field.key.starts_with("about "); }

SqlFile read_sql_file(const std::string& what, const std::string& folder, const std::string& text) {
  SqlFile file = read_header(what, text);
  if (const auto with = std::ranges::find(file.fields, "with", &HeaderField::key); with != file.fields.end()) {
    require_select(what, file);
    begin_with(file, what, *with, named_file(what, folder, *with).sql);
    file.fields.erase(with);
    return file;
  }
  const auto like = std::ranges::find(file.fields, "like", &HeaderField::key);
  if (like == file.fields.end()) {
    require_select(what, file);
    return file;
  }
  if (!file.sql.empty()) malformed_line(what, like->line, "a SELECT stands where 'like' takes that of another file");
  SqlFile whole = named_file(what, folder, *like);
  file.fields.erase(like);
  // The sentences of a caption are taken together or not at all.
  const bool has_caption =
      std::ranges::any_of(file.fields, [](const HeaderField& own) { return own.key == "caption" || is_about(own); });
  std::erase_if(whole.fields, [&](const HeaderField& field) {
    if (is_about(field)) return has_caption;
    return std::ranges::find(file.fields, field.key, &HeaderField::key) != file.fields.end();
  });
  file.fields.insert(file.fields.begin(), whole.fields.begin(), whole.fields.end());
  file.sql = whole.sql;
  return file;
}

std::vector<std::string> parts_filled(const std::string& value) {
  std::vector<std::string> parts;
  for (const std::string& part : split(value, ',')) parts.push_back(trim(part));
  return parts;
}

}  // namespace syslab::report
