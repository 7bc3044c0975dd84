#include <fmt/format.h>

#include <algorithm>

#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/writers/writers.hpp"

namespace syslab::report {
namespace {

template <typename Written>
std::string write_as(const Written& written, Format format) {
  switch (format) {
    case Format::markdown:
      return write_markdown(written);
    case Format::latex:
      return write_tex(written);
    case Format::html:
      return write_html(written);
    case Format::csv:
      return write_csv(written);
    case Format::json:
      return write_json(written);
  }
  return {};
}

bool is_a_number(const store::Cell& cell) {
  return cell.type == store::Cell::Type::integer || cell.type == store::Cell::Type::real;
}

std::string shown(const store::Cell& cell) {
  switch (cell.type) {
    case store::Cell::Type::null:
      return "-";
    case store::Cell::Type::integer:
      return std::to_string(cell.integer);
    case store::Cell::Type::real:
      return fmt::format("{:.6g}", cell.real);
    case store::Cell::Type::text: {
      std::string text = printable(cell.text);
      std::ranges::replace(text, '\n', ' ');
      return text;
    }
  }
  return {};
}

}  // namespace

std::string write(const Table& table, Format format) { return write_as(table, format); }
std::string write(const store::ResultSet& result, Format format) { return write_as(result, format); }

std::string write_aligned(const std::vector<Column>& header, const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::string> names;
  std::vector<std::size_t> widths;
  for (const Column& column : header) {
    names.push_back(column.unit.empty() || column.unit == "1" ? column.heading()
                                                              : column.heading() + " [" + column.unit + "]");
    widths.push_back(width_of(names.back()));
  }
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) widths.at(i) = std::max(widths.at(i), width_of(row[i]));
  }
  std::string out;
  const auto add_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += header[i].align == "right" ? padding + row[i] : row[i] + padding;
    }
    std::ranges::replace_if(
        line, [](char c) { return c == '\n' || c == '\r'; }, ' ');  // a row is a line
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_row(names);
  for (const auto& row : cells) add_row(row);
  return out;
}

std::string write_aligned(const store::ResultSet& result) {
  std::vector<Column> header;
  std::vector<std::vector<std::string>> cells;
  for (std::size_t i = 0; i < result.columns.size(); ++i) {
    const bool number = std::ranges::any_of(result.rows, [i](const auto& row) { return is_a_number(row[i]); });
    header.push_back(
        {.name = printable(result.columns[i]), .unit = "1", .format = "s", .align = number ? "right" : "left"});
  }
  for (const auto& row : result.rows) {
    std::vector<std::string>& line = cells.emplace_back();
    for (const store::Cell& cell : row) line.push_back(shown(cell));
  }
  return write_aligned(header, cells);
}

}  // namespace syslab::report
