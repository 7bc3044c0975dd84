#include "cli/error_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "report/figure/svg.hpp"

namespace syslab::cli {
namespace {

// How far beyond its bound a cell is, in four classes.
struct Severity {
  double most;  // error over bound, included
  std::string_view mark, colour, words;
};
constexpr std::array<Severity, 4> kSeverities{{{1, "·", "#e8e8e8", "within the bound"},
                                               {10, "+", "#fdbe85", "up to 10 times the bound"},
                                               {1000, "*", "#fd8d3c", "up to 1000 times"},
                                               {0, "#", "#a63603", "beyond that, or NaN"}}};

const Severity& severity_of(double ratio) {
  for (const Severity& one : kSeverities) {
    if (ratio <= one.most) return one;
  }
  return kSeverities.back();
}

std::string sizes_of(const ErrorMap& map) {
  return fmt::format("{}: {} rows, {} columns", map.tensor, map.rows, map.columns);
}

}  // namespace

ErrorMap parse_error_map(const std::string& json) {
  const Json parsed = json_or_discarded(json);
  try {
    ErrorMap map{parsed.at("tensor").get<std::string>(), parsed.at("rows").get<std::int64_t>(),
                 parsed.at("columns").get<std::int64_t>(), parsed.at("cells").get<std::vector<std::vector<double>>>()};
    const auto uneven = [&](const std::vector<double>& row) { return row.size() != map.cells.front().size(); };
    if (!map.cells.empty() && !map.cells.front().empty() && std::none_of(map.cells.begin(), map.cells.end(), uneven)) {
      return map;
    }
  } catch (const nlohmann::json::exception&) {
  }
  throw Error(ErrorKind::store, "a stored error map has not the form {tensor, rows, columns, cells}");
}

std::string svg_of(const ErrorMap& map, const std::string& of) {
  constexpr int kCell = 10, kLeft = 10, kTop = 44, kLine = 18;
  const int across = static_cast<int>(map.cells.front().size()), down = static_cast<int>(map.cells.size());
  const int width = std::max(kLeft * 2 + across * kCell, 520), legend = kTop + down * kCell + kLine;
  const int height = legend + kLine;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-labelledby=\"title\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title id=\"title\">Errors over their bounds, {2}, {3}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
      "<text x=\"{4}\" y=\"16\">{2}</text>\n<text x=\"{4}\" y=\"34\">{3}, all batches and heads over each "
      "other</text>\n",
      width, height, report::escape_xml(of), report::escape_xml(sizes_of(map)), kLeft);
  for (int row = 0; row < down; ++row) {
    for (int column = 0; column < across; ++column) {
      const double ratio = map.cells[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
      svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", kLeft + column * kCell,
                         kTop + row * kCell, kCell - 1, kCell - 1, severity_of(ratio).colour);
    }
  }
  int x = kLeft;
  for (const Severity& one : kSeverities) {
    svg +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"9\" height=\"9\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
                    x, legend - 9, one.colour, x + 13, legend, one.words);
    x += 26 + static_cast<int>(one.words.size()) * 6;
  }
  return svg + "</svg>\n";
}

std::string text_of(const ErrorMap& map) {
  constexpr std::size_t kMostRows = 16, kMostColumns = 64;
  const std::size_t rows = map.cells.size(), columns = map.cells.front().size();
  const std::size_t down = std::min(rows, kMostRows), across = std::min(columns, kMostColumns);
  std::vector<std::vector<double>> worst(down, std::vector<double>(across, 0.0));
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      double& cell = worst[row * down / rows][column * across / columns];
      cell = std::max(cell, map.cells[row][column]);
    }
  }
  std::string text;
  for (const std::vector<double>& row : worst) {
    text += "  ";
    for (const double ratio : row) text += severity_of(ratio).mark;
    text += "\n";
  }
  text += "  " + sizes_of(map);
  for (const Severity& one : kSeverities) text += fmt::format("; {} {}", one.mark, one.words);
  return text + "\n";
}

}  // namespace syslab::cli
