#include "report/figure/plots.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "report/figure/style.hpp"

namespace syslab::report {

bool has_bars(FigureKind kind) { return kind == FigureKind::bars || kind == FigureKind::stacks; }
bool is_filled(FigureKind kind) {
  return kind == FigureKind::stacks || kind == FigureKind::areas || kind == FigureKind::lanes;
}

const char* ink_of(Terminal terminal) { return terminal == Terminal::svg ? kInk : "#000000"; }

const char* colour_of(FigureKind kind, std::size_t series) {
  return is_filled(kind) ? kFills[series % kFills.size()] : style_of(series).colour;
}

std::string fill_of(FigureKind kind, std::size_t series, const char* ink) {
  // Spans of a lane may be narrower than a line. A second round of the same fills is thinner.
  const char* solid = series < kFills.size() ? "1.0" : "0.5";
  if (kind == FigureKind::lanes) return fmt::format("fillstyle solid {} noborder", solid);
  if (is_filled(kind)) return fmt::format("fillstyle solid {} border lc rgb '{}'", solid, ink);
  return fmt::format("fillstyle solid {} border lc rgb '{}'", series % 2 == 0 ? "0.85" : "0.4",
                     style_of(series).colour);
}

double lane_at(const FigureData& data, double category) {
  return static_cast<double>(data.categories.size() - 1) - category;
}

// A block of rows for `plot`, by its name.
std::string FigurePlots::block(const std::vector<std::string>& rows) {
  const std::string name = fmt::format("$figure{}_{}", number_, blocks_++);
  text_ += fmt::format("{} << EOD\n{}\nEOD\n", name, fmt::join(rows, "\n"));
  return name;
}

std::string FigurePlots::commands(const FigurePanel& panel, const Axis& x, double width,
                                  const std::vector<double>& apart) {
  text_.clear();
  std::vector<std::string> drawn;
  for (const FigureRoof& roof : panel.roofs) drawn.push_back(roof_line(roof, x));
  std::map<double, double> below;  // by x: what is stacked so far
  for (const FigureSeries& series : panel.series) {
    if (is_filled(data_.kind)) {
      drawn.push_back(is(FigureKind::areas) ? area(series, below) : boxes(series, below));
    } else {
      const double offset = (static_cast<double>(series.style) + 0.5) / static_cast<double>(data_.names.size()) - 0.5;
      add_series(series, 0.8 * offset, apart, (x.high - x.low) * 0.5 / width, drawn);
    }
  }
  return fmt::format("{}plot {}\n", text_, fmt::join(drawn, ", \\\n     "));
}

// Steps from below to below + y; each holds until the next moment.
std::string FigurePlots::area(const FigureSeries& series, std::map<double, double>& below) {
  std::vector<std::string> rows;
  double low = 0, high = 0;
  for (const FigurePoint& point : series.points) {
    if (!rows.empty()) rows.push_back(fmt::format("{:.9g} {:.9g} {:.9g}", point.x, low, high));
    low = below[point.x];
    high = below[point.x] += point.y;
    rows.push_back(fmt::format("{:.9g} {:.9g} {:.9g}", point.x, low, high));
  }
  return fmt::format("{} using 1:2:3 with filledcurves lw 0.5 fillcolor rgb '{}' {}", block(rows),
                     colour_of(data_.kind, series.style), fill_of(data_.kind, series.style, ink_));
}

std::string FigurePlots::boxes(const FigureSeries& series, std::map<double, double>& below) {
  constexpr double kHalf = 0.36;  // of the room that a stack or a lane has
  std::vector<std::string> rows;
  for (const FigurePoint& point : series.points) {
    if (is(FigureKind::lanes)) {
      const double y = lane_at(data_, point.y);
      rows.push_back(fmt::format("{:.9g} {:.9g} {:.9g} {:.9g} {:.9g} {:.9g}", point.x, y, point.x, point.end, y - kHalf,
                                 y + kHalf));
    } else {
      const double low = below[point.x], high = below[point.x] += point.y;
      rows.push_back(fmt::format("{:.9g} {:.9g} {:.9g} {:.9g} {:.9g} {:.9g}", point.x, low, point.x - kHalf,
                                 point.x + kHalf, low, high));
    }
  }
  return fmt::format("{} using 1:2:3:4:5:6 with boxxyerror lw 0.5 fillcolor rgb '{}' {}", block(rows),
                     colour_of(data_.kind, series.style), fill_of(data_.kind, series.style, ink_));
}

std::string FigurePlots::roof_line(const FigureRoof& roof, const Axis& x_axis) {
  std::vector<std::string> rows;
  const double ridge = roof.peak / roof.bandwidth * 1e3;
  for (const double x : {x_axis.low, ridge, x_axis.high})
    rows.push_back(fmt::format("{:.9g} {:.9g}", x, under(roof, x)));
  return fmt::format("{} using 1:2 with lines lw 1.5 lc rgb '{}'", block(rows), ink_);
}

void FigurePlots::add_series(const FigureSeries& series, double offset, const std::vector<double>& apart_places,
                             double dot_length, std::vector<std::string>& drawn) {
  const SeriesStyle style = style_of(series.style);
  const bool bars = has_bars(data_.kind), trace = is(FigureKind::trace);
  std::vector<std::string> points, apart, intervals, flagged;
  for (const FigurePoint& point : series.points) {
    const double x = bars          ? point.x + offset
                     : point.apart ? apart_places.at(static_cast<std::size_t>(point.x))
                                   : point.x;
    const bool interval = std::isfinite(point.low);
    (point.apart ? apart : points).push_back(fmt::format("{:.9g} {:.9g}", x, point.y));
    if (interval) intervals.push_back(fmt::format("{:.9g} {:.9g} {:.9g} {:.9g}", x, point.y, point.low, point.high));
    if (trace && !interval) intervals.push_back(fmt::format("{0:.9g} {1:.9g} {1:.9g} {1:.9g}", x, point.y));
    if (point.flagged) flagged.push_back(points.back());
  }
  if (trace) {
    // A dot is a short line with round ends, so that one path holds all dots; marks would be as many shapes.
    drawn.push_back(fmt::format("{} using ($1-{:.9g}):3:({:.9g}):($4-$3) with vectors nohead lw 3 lc rgb '{}'",
                                block(intervals), dot_length / 2, dot_length, style.colour));
    if (!flagged.empty()) {
      drawn.push_back(fmt::format("{} using 1:2 with points pt 2 ps 0.6 lw 1.2 lc rgb '{}'", block(flagged), ink_));
    }
    return;
  }
  if (bars) {
    drawn.push_back(fmt::format("{} using 1:2:({:.5f}) with boxes lc rgb '{}' {}", block(points),
                                0.8 / static_cast<double>(data_.names.size()), style.colour,
                                fill_of(data_.kind, series.style, ink_)));
  }
  if (!intervals.empty()) {
    drawn.push_back(fmt::format("{} using 1:2:3:4 with yerrorbars pt 0 lw 1.2 lc rgb '{}'", block(intervals),
                                bars ? ink_ : style.colour));
  }
  if (!apart.empty()) {
    drawn.push_back(
        fmt::format("{} using 1:2 with points pt {} ps 0.7 lc rgb '{}'", block(apart), style.mark, style.colour));
  }
  if (is(FigureKind::lines) && !points.empty()) {
    drawn.push_back(fmt::format("{} using 1:2 with linespoints lw 1.8 dt {} pt {} ps 0.55 lc rgb '{}'", block(points),
                                style.dash, style.mark, style.colour));
  } else if (is(FigureKind::roofline)) {
    drawn.push_back(
        fmt::format("{} using 1:2 with points pt {} ps 0.7 lc rgb '{}'", block(points), style.mark, style.colour));
  }
}

}  // namespace syslab::report
