#include "grade/lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"

namespace syslab::grade {
namespace {

[[noreturn]] void refuse_line(const std::string& name, std::size_t line, const std::string& what) {
  throw Error(ErrorKind::usage, fmt::format("{}, line {}: {}", name, line + 1, one_line(what)));
}

// The rows behind the header, which must name these columns and no others.
std::vector<std::vector<std::string>> rows_of(std::string_view text, const std::string& name,
                                              const std::vector<std::string>& columns) {
  std::vector<std::vector<std::string>> rows = parse_csv(text, name);
  if (rows.empty() || rows.front() != columns) {
    refuse_line(name, 0, fmt::format("the header must be {}", fmt::join(columns, ",")));
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != columns.size()) {
      refuse_line(name, i, fmt::format("{} fields, and the header has {}", rows[i].size(), columns.size()));
    }
  }
  return rows;
}

ItemScore* find_item(Graded& one, const std::string& wanted) {
  for (ProblemScore& score : one.scores) {
    for (ItemScore& item : score.items) {
      if (wanted == item_name(*score.problem, *item.item)) return &item;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<std::vector<std::string>> parse_csv(std::string_view text, const std::string& name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  bool quoted = false;
  const auto end_row = [&] {
    row.push_back(trim(field));
    field.clear();
    if (row.size() > 1 || !row.front().empty()) rows.push_back(row);
    row.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quoted && letter == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (letter == '"') {
      quoted = !quoted;
    } else if (!quoted && letter == ',') {
      row.push_back(trim(field));
      field.clear();
    } else if (!quoted && letter == '\n') {
      end_row();
    } else if (quoted || letter != '\r') {
      field += letter;
    }
  }
  if (quoted) refuse_line(name, rows.size(), "a quotation mark does not close");
  if (!field.empty() || !row.empty()) end_row();
  return rows;
}

void add_written(std::vector<Graded>& all, std::string_view text, const std::string& name) {
  const auto rows = rows_of(text, name, {"student", "item", "points"});
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto one = std::ranges::find(all, rows[i][0], &Graded::id);
    if (one == all.end()) refuse_line(name, i, fmt::format("there is no submission of '{}'", rows[i][0]));
    ItemScore* const item = find_item(*one, rows[i][1]);
    if (item == nullptr) refuse_line(name, i, fmt::format("the rubric has no item '{}'", rows[i][1]));
    if (!item->item->written) refuse_line(name, i, fmt::format("'{}' is not graded by a person", rows[i][1]));
    if (!item->open) refuse_line(name, i, fmt::format("'{}' of '{}' is there twice", rows[i][1], rows[i][0]));
    const std::string& said = rows[i][2];
    double points = 0;
    const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), points);
    if (error != std::errc{} || end != said.data() + said.size() || !(points >= 0 && points <= item->item->points)) {
      refuse_line(name, i, fmt::format("'{}' are no points from 0 to {:g}", said, item->item->points));
    }
    item->earned = points;
    item->open = false;
  }
}

std::map<std::string, std::string> parse_roster(std::string_view text, const std::string& name) {
  const auto rows = rows_of(text, name, {"id", "name"});
  std::map<std::string, std::string> roster;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (!roster.emplace(rows[i][0], rows[i][1]).second) {
      refuse_line(name, i, fmt::format("'{}' is there twice", rows[i][0]));
    }
  }
  return roster;
}

}  // namespace syslab::grade
