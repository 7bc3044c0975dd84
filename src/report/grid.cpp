#include "report/grid.hpp"

#include <algorithm>

#include "report/cells.hpp"

namespace syslab::report {
namespace {

Style style_of(const Column& column, const std::string& text) {
  if (column.format == "code" || column.format == "uid") return Style::code;
  if (column.format != "status" && column.format != "outcome") return Style::plain;
  return text == "passed" || text == "ok" ? Style::plain : Style::strong;
}

}  // namespace

GridCell grid_cell(const Table& table, std::size_t row, const Column& column) {
  const store::Cell& cell = cell_of(table.result, row, column.name);
  GridCell shown{{Style::plain, formatted(table, row, column)}, plain(cell)};
  if (cell.type != store::Cell::Type::null) shown.span.style = style_of(column, shown.span.text);
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
    grid.columns.push_back({result.columns[i], "1", "s", numeric ? "right" : "left"});
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
  return marked("Not measured; `" + table.source.command + "` would tell.");
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
