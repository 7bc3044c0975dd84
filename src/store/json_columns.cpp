#include "store/json_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "core/resources.hpp"

namespace syslab::store {
namespace {

constexpr std::string_view kTrigger = "CREATE TEMP TRIGGER", kTable = " ON main.", kColumn = "json_valid(NEW.";

std::string name_at(std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at), text.size());
  return std::string(text.substr(at, end - at));
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

std::string malformed_json_in(Connection& db) {
  for (const auto& [table, column] : json_columns()) {
    const auto malformed = db.integer(fmt::format(
        "SELECT EXISTS (SELECT 1 FROM main.{0} WHERE {1} IS NOT NULL AND NOT json_valid({1}))", table, column));
    if (malformed == 0) continue;
    return fmt::format("database '{}': a value of its {}.{} is malformed JSON; expected JSON", db.shown_as().string(),
                       table, column);
  }
  return {};
}

}  // namespace syslab::store
