#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text/workflow_commands.hpp"
#include "report/writers/writers.hpp"

namespace syslab::report {
namespace {

using Ordered = nlohmann::ordered_json;  // columns keep the order of the SELECT

Ordered value_of(const store::Cell& cell) {
  switch (cell.type) {
    case store::Cell::Type::null:
      return nullptr;
    case store::Cell::Type::integer:
      return cell.integer;
    case store::Cell::Type::real:
      return std::isfinite(cell.real) ? Ordered(cell.real) : Ordered(nullptr);
    case store::Cell::Type::text:
      return cell.text;
  }
  return nullptr;
}

Ordered json_rows(const store::ResultSet& result) {
  Ordered rows = Ordered::array();
  for (const auto& row : result.rows) {
    Ordered object = Ordered::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[result.columns[i]] = value_of(row[i]);
    rows.push_back(std::move(object));
  }
  return rows;
}

// Bytes that are not UTF-8 become U+FFFD: the text always parses.
std::string text_of(const Ordered& json) {
  return printed_json(json.dump(2, ' ', false, Ordered::error_handler_t::replace)) + "\n";
}

Ordered json_of(const Table& table) {
  Ordered columns = Ordered::array();
  for (const Column& column : table.source.columns) columns.push_back({{"name", column.name}, {"unit", column.unit}});
  return {{"id", table.source.id},
          {"experiment", table.source.experiment},
          {"title", table.source.title.empty() ? table.source.sentence : table.source.title},
          {"caption", whole_caption(table.source)},
          {"warning", table.warning},
          {"provenance", table.footnote},
          {"command", table.source.command},
          {"columns", columns},
          {"notes", table.source.notes},
          {"rows", json_rows(table.result)}};
}

}  // namespace

std::string write_json(const Table& table) { return text_of(json_of(table)); }

std::string write_json(const std::vector<Table>& tables) {
  Ordered list = Ordered::array();
  for (const Table& table : tables) list.push_back(json_of(table));
  return text_of(list);
}

std::string write_json(const store::ResultSet& result) { return text_of(json_rows(result)); }

}  // namespace syslab::report
