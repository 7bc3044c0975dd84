#include "store/json_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/json_text.hpp"

namespace syslab::store {
namespace {

constexpr std::string_view kTrigger = "CREATE TEMP TRIGGER", kTable = " ON main.", kColumn = "json_valid(NEW.";

std::string name_at(std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at), text.size());
  return std::string(text.substr(at, end - at));
}

// Columns whose JSON is of one type, see db/checks/json.sql.
struct OfOneType {
  std::string_view table, column, type;
};
constexpr std::array kOfOneType{OfOneType{"run", "argv", "array"}, OfOneType{"case_def", "params", "object"}};

// An expression that names a row `t` of the table: 'attempt 0198…', 'run 0198…'.
std::string row_name(Connection& db, std::string_view table) {
  const auto has = [&](std::string_view column) {
    return Statement(db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2").with(table, column).step();
  };
  if (has("uid")) return fmt::format("'{} ' || t.uid", table);
  if (has("attempt_id")) return "'attempt ' || (SELECT a.uid FROM main.attempt a WHERE a.id = t.attempt_id)";
  if (has("run_uid")) return "'run ' || t.run_uid";
  throw Error(ErrorKind::internal, fmt::format("nothing names the rows of {}", table));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> json_columns() {
  const std::string_view text = find_resource("db/checks/json.sql").value_or("");
  std::vector<std::pair<std::string, std::string>> found;
  for (std::size_t begin = text.find(kTrigger); begin < text.size();) {
    const std::size_t end = std::min(text.find(kTrigger, begin + 1), text.size());
    const std::string_view trigger = text.substr(begin, end - begin);
    const std::string table = name_at(trigger, trigger.find(kTable) + kTable.size());
    for (std::size_t at = trigger.find(kColumn); at < trigger.size(); at = trigger.find(kColumn, at + 1)) {
      const std::pair<std::string, std::string> one{table, name_at(trigger, at + kColumn.size())};
      if (std::ranges::find(found, one) == found.end()) found.push_back(one);
    }
    begin = end;
  }
  if (found.empty()) throw Error(ErrorKind::internal, "this binary's db/checks/json.sql names no column");
  return found;
}

std::string json_fault_in(Connection& db) {
  for (const auto& [table, column] : json_columns()) {
    const std::string row = row_name(db, table);
    Statement malformed(db, fmt::format("SELECT {1}, {2} FROM main.{0} t WHERE {1} IS NOT NULL AND NOT json_valid({1})",
                                        table, column, row));
    if (!malformed.step()) continue;
    std::string fault = nesting_fault(malformed.text(0));
    if (fault.empty()) fault = "malformed JSON; expected JSON";
    return fmt::format("its {}.{} is {} ({})", table, column, fault, malformed.text(1));
  }
  for (const OfOneType& one : kOfOneType) {
    Statement other(db, fmt::format("SELECT {2} FROM main.{0} t WHERE json_type({1}) <> '{3}'", one.table, one.column,
                                    row_name(db, one.table), one.type));
    if (!other.step()) continue;
    return fmt::format("its {}.{} is no JSON {}; expected one ({})", one.table, one.column, one.type, other.text(0));
  }
  return {};
}

std::string malformed_json_in(Connection& db) {
  const std::string fault = json_fault_in(db);
  return fault.empty() ? "" : fmt::format("database '{}': {}", db.shown_as().string(), fault);
}

}  // namespace syslab::store
