#include "report/grid.hpp"

#include <algorithm>

#include "contract/outcome.hpp"
#include "core/text/printable.hpp"
#include "report/cells.hpp"

namespace syslab::report {
namespace {

Style style_of(const Column& column, const store::Cell& cell) {
  if (is_code(column) || column.format == "uid") return Style::code;
  if (column.format == "strong") return Style::strong;
  if (column.format != "status" && column.format != "outcome") return Style::plain;
  const bool is_well = outcome_of(cell.text) == Outcome::passed || syslab::status_of(cell.text) == Status::ok;
  return is_well ? Style::plain : Style::strong;
}

// A footnote begins with devices (the machine's, not that of a case that stayed on its CPU) and protocols.
bool told_by_footnote(const Table& table, const Column& column, const std::string& value) {
  const bool has_place = column.name == "device" || column.name == "protocol";
  return has_place && table.footnote.find(value) != std::string::npos;
}

// "noise contended", "bucket limit 25 MiB"; empty where that is none of it. Rows that did not end well have no value
// and no part in it.
std::string in_every_row(const Table& table, const Column& column) {
  std::string value;
  bool everywhere = true;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    if (cell_of(table.result, row, column.name).type != store::Cell::Type::null) {
      value = unmarked(formatted(table, row, column));
    } else {
      everywhere = everywhere && status_of(table, row).value_or(Status::ok) != Status::ok;
    }
  }
  if (value == "none" || value == "–" || value == "0" || told_by_footnote(table, column, value)) return {};
  if (column.name == "wire" && value == "own") return {};  // gradients travel as they are, as anybody would expect
  if (is_code(column)) value = "`" + value + "`";
  const bool bears_unit = column.unit == "1" || column.format.back() == 'b';
  return unmarked(heading_of(column)) + " " + value + (bears_unit ? "" : " " + column.unit) +
         (everywhere ? "" : " (where there is one)");
}

}  // namespace

std::string foot_of(const Table& table) {
  std::string common;
  for (const Column& column : unvaried_columns(table)) {
    const std::string one = in_every_row(table, column);
    if (!one.empty()) common += (common.empty() ? "every row: " : ", ") + one;
  }
  return common + (common.empty() || table.footnote.empty() ? "" : " · ") + table.footnote;
}

GridCell grid_cell(const Table& table, std::size_t row, const Column& column) {
  const store::Cell& cell = cell_of(table.result, row, column.name);
  GridCell shown{{Style::plain, formatted(table, row, column)}, plain(cell)};
  if (cell.type != store::Cell::Type::null) shown.span.style = style_of(column, cell);
  return shown;
}

Grid grid_of(const Table& table) {
  Grid grid{shown_columns(table), {}};
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    std::vector<GridCell>& cells = grid.rows.emplace_back();
    for (const Column& column : grid.columns) cells.push_back(grid_cell(table, row, column));
  }
  return grid;
}

Grid grid_of(const store::ResultSet& result) {
  Grid grid;
  for (std::size_t i = 0; i < result.columns.size(); ++i) {
    const bool numeric =
        !result.rows.empty() && std::all_of(result.rows.begin(), result.rows.end(),
                                            [i](const auto& row) { return row[i].type != store::Cell::Type::text; });
    grid.columns.push_back({printable(result.columns[i]), "1", "s", numeric ? "right" : "left"});
  }
  for (const auto& row : result.rows) {
    std::vector<GridCell>& cells = grid.rows.emplace_back();
    for (const store::Cell& cell : row) {
      const std::string text = plain(cell);
      cells.push_back({{Style::plain, cell.type == store::Cell::Type::null ? "NULL" : text}, text});
    }
  }
  return grid;
}

Text without_rows(const Table& table) {
  if (!table.source.empty.empty()) return marked(table.source.empty);
  return marked("Not measured: `" + unmarked(table.source.command) + "`.");
}

std::string heading_of(const Column& column) {
  std::string name = column.heading();
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string unit_of(const Column& column) {
  const bool in_cells = column.format.back() == 'b';
  return column.unit == "1" || in_cells ? "" : "[" + column.unit + "]";
}

}  // namespace syslab::report
