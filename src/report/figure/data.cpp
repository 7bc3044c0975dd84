#include "report/figure/data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "contract/status.hpp"
#include "core/error.hpp"
#include "report/byte_unit.hpp"
#include "report/cells.hpp"
#include "report/text.hpp"

namespace syslab::report {
namespace {

using Type = store::Cell::Type;

// Nobody can distinguish, or read, more than these.
constexpr std::size_t kMostSeries = 12;
constexpr std::size_t kMostPanels = 8;
constexpr std::size_t kMostCategories = 24;
constexpr std::size_t kMostNamed = 4;
constexpr std::size_t kMostApart = 3;
// For a trace longer than kMostSamples, ranges are drawn: the picture is some 300 points wide.
constexpr std::size_t kMostSamples = 600;
constexpr std::size_t kRanges = 300;
constexpr double kLaneSteps = 1500;   // intervals of a lane closer than so many parts of the picture are drawn as one,
constexpr double kWideSteps = 75;     // but not two that are each longer than so many: the line between them is seen
constexpr double kNarrowSteps = 540;  // what is narrower than half a dot of a panel some viewers draw and some do not

double number_in(const store::Cell& cell) {
  if (cell.type == Type::integer) return static_cast<double>(cell.integer);
  return cell.type == Type::real ? cell.real : kNone;
}

bool logarithmic(const FigureAxis& axis) { return axis.scale == "log2" || axis.scale == "log10"; }

std::string label_of(const std::string& name, const std::string& unit) {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', ' ');
  return unit == "1" ? text : fmt::format("{} ({})", text, unit);
}

// Index of `name` in the list, to which it is added if new; nothing if that would be one too many.
std::optional<std::size_t> place_of(std::vector<std::string>& list, const std::string& name, std::size_t most) {
  const auto found = std::find(list.begin(), list.end(), name);
  if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
  if (list.size() == most) return std::nullopt;
  list.push_back(name);
  return list.size() - 1;
}

std::string few(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNamed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

// Bytes of which all are below 1 of the declared unit are drawn in a smaller one, which is returned.
std::string fit_unit(std::vector<FigurePanel>& panels, const std::string& declared) {
  const std::optional<double> bytes = bytes_in(declared);
  double most = 0;
  for (const FigurePanel& panel : panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) most = std::max(most, std::abs(point.y));
    }
  }
  if (!bytes || most == 0 || most >= 1) return declared;
  const std::string unit(fitting_unit(most * *bytes, declared));
  const double factor = *bytes / *bytes_in(unit);
  for (FigurePanel& panel : panels) {
    for (FigureSeries& series : panel.series) {
      for (FigurePoint& point : series.points) point.y *= factor, point.low *= factor, point.high *= factor;
    }
    for (std::vector<FigureLine>* lines : {&panel.ceilings, &panel.middles}) {
      for (FigureLine& line : *lines) line.y *= factor, line.low *= factor, line.high *= factor;
    }
  }
  return unit;
}

// Reads the result row by row.
class Reader {
 public:
  Reader(const FigureSource& source, const store::ResultSet& result) : source_(source), result_(result) {
    for (const std::string& column : wanted()) {
      if (column.empty() || find_column(result, column)) continue;
      throw Error(ErrorKind::internal, fmt::format("figure {}.sql names the column '{}', its SELECT gives {}",
                                                   source.id, column, fmt::join(result.columns, ", ")));
    }
  }

  FigureData read() {
    data_.kind = source_.kind;
    data_.x_scale = source_.x.scale;
    data_.y_scale = source_.y.scale;
    for (const std::string& column : source_.panel) {
      if (varies(column)) {
        telling_.push_back(column);
      } else {
        add_common(column);
      }
    }
    for (std::size_t row = 0; row < result_.rows.size(); ++row) read_row(row);
    std::string x_name = source_.x.column;
    if (!source_.x_name.empty() && !result_.rows.empty()) x_name = text(0, source_.x_name);
    data_.x_label = label_of(x_name, source_.x.unit);
    std::erase_if(data_.panels, [](const FigurePanel& panel) { return panel.series.empty(); });
    for (FigurePanel& panel : data_.panels) tidy(panel);
    data_.y_label = label_of(source_.y.column, lanes() ? source_.y.unit : fit_unit(data_.panels, source_.y.unit));
    tell();
    return std::move(data_);
  }

 private:
  std::vector<std::string> wanted() const {
    std::vector<std::string> columns{source_.x.column, source_.y.column,   source_.x_name,      source_.low,
                                     source_.high,     source_.series,     source_.flag,        source_.middle,
                                     source_.end,      source_.middle_low, source_.middle_high, source_.bandwidth,
                                     source_.peak,     source_.apart};
    columns.insert(columns.end(), source_.panel.begin(), source_.panel.end());
    for (const FigureCeiling& ceiling : source_.ceilings) columns.push_back(ceiling.column);
    return columns;
  }

  double number(std::size_t row, const std::string& column) const {
    return column.empty() ? kNone : number_in(cell_of(result_, row, column));
  }
  std::string text(std::size_t row, const std::string& column) const {
    return column.empty() ? std::string() : plain(cell_of(result_, row, column));
  }

  bool varies(const std::string& column) const {
    for (std::size_t row = 1; row < result_.rows.size(); ++row) {
      if (text(row, column) != text(0, column)) return true;
    }
    return false;
  }

  static std::string told(const std::string& column, const std::string& value) {
    return column == "panel" ? value : label_of(column, "1") + " " + value;
  }

  // Gradients that travel as they are need no word.
  void add_common(const std::string& column) {
    const std::string value = result_.rows.empty() ? std::string() : text(0, column);
    if (value.empty() || (column == "wire" && value == "own")) return;
    data_.common += (data_.common.empty() ? "" : ", ") + told(column, value);
  }

  std::string panel_of(std::size_t row) const {
    std::vector<std::string> words;
    for (const std::string& column : telling_) words.push_back(told(column, text(row, column)));
    return fmt::format("{}", fmt::join(words, ", "));
  }

  void read_row(std::size_t row) {
    const std::string panel_name = panel_of(row), series_name = text(row, source_.series);
    FigurePoint point;
    if (lanes()) {
      const auto lane = place_of(data_.categories, text(row, source_.y.column), kMostCategories);
      if (!lane) return static_cast<void>(other_categories_.insert(text(row, source_.y.column)));
      point.y = static_cast<double>(*lane);
      point.end = number(row, source_.end);
    } else {
      point.y = number(row, source_.y.column);
    }
    const std::string status = text(row, "status");
    if (std::isnan(point.y) && !status.empty() && syslab::status_of(status) != Status::ok) {
      std::string where = fmt::format("{}{}{} {}", series_name, series_name.empty() ? "" : " at ", source_.x.column,
                                      text(row, source_.x.column));
      if (!panel_name.empty()) where += fmt::format(" ({})", panel_name);
      return add_once(failed_, fmt::format("{}: {}", where, status_word(status)));
    }
    if (source_.x.scale == "text") {
      const auto category = place_of(data_.categories, text(row, source_.x.column), kMostCategories);
      if (!category) return static_cast<void>(other_categories_.insert(text(row, source_.x.column)));
      point.x = static_cast<double>(*category);
    } else if (const std::string beside = text(row, source_.apart); !beside.empty()) {
      const auto place = place_of(data_.apart, beside, kMostApart);
      if (!place) return static_cast<void>(++not_numbers_);
      point.apart = true;
      point.x = static_cast<double>(*place);
    } else {
      point.x = number(row, source_.x.column);
    }
    if (!(point.apart || drawable(point.x, source_.x)) || !drawable(point.y, source_.y))
      return static_cast<void>(++not_numbers_);
    if (lanes() && !(point.end >= point.x)) return static_cast<void>(++not_numbers_);
    set_interval(point, number(row, source_.low), number(row, source_.high));
    if (!source_.flag.empty()) {
      const double flag = number(row, source_.flag);
      point.flagged = !std::isnan(flag) && flag != 0;
    }
    const auto panel_place = place_of(panel_names_, panel_name, kMostPanels);
    if (!panel_place) return static_cast<void>(other_panels_.insert(panel_name));
    if (*panel_place == data_.panels.size()) data_.panels.push_back({panel_name, {}, {}, {}, {}});
    const auto style = place_of(data_.names, series_name, kMostSeries);
    if (!style) return static_cast<void>(other_series_.insert(series_name));
    FigurePanel& panel = data_.panels[*panel_place];
    series_in(panel, *style).points.push_back(point);
    add_lines(panel, row);
  }

  bool lanes() const { return source_.kind == FigureKind::lanes; }

  static bool drawable(double value, const FigureAxis& axis) {
    return std::isfinite(value) && (!logarithmic(axis) || value > 0);
  }

  void set_interval(FigurePoint& point, double low, double high) const {
    if (!std::isfinite(low) || !std::isfinite(high) || low > high) return;
    if (logarithmic(source_.y) && low <= 0) return;
    point.low = low;
    point.high = high;
  }

  static FigureSeries& series_in(FigurePanel& panel, std::size_t style) {
    for (FigureSeries& series : panel.series) {
      if (series.style == style) return series;
    }
    panel.series.push_back({style, {}});
    return panel.series.back();
  }

  void add_lines(FigurePanel& panel, std::size_t row) {
    for (const FigureCeiling& ceiling : source_.ceilings) {
      add_line(panel.ceilings, {number(row, ceiling.column), kNone, kNone, ceiling.label});
    }
    if (!source_.middle.empty()) {
      add_line(panel.middles, {number(row, source_.middle), number(row, source_.middle_low),
                               number(row, source_.middle_high), "median"});
    }
    if (source_.bandwidth.empty()) return;
    const FigureRoof roof{number(row, source_.bandwidth), number(row, source_.peak)};
    if (!std::isfinite(roof.bandwidth) || !std::isfinite(roof.peak) || roof.bandwidth <= 0 || roof.peak <= 0) return;
    const bool known = std::any_of(panel.roofs.begin(), panel.roofs.end(), [&](const FigureRoof& one) {
      return one.bandwidth == roof.bandwidth && one.peak == roof.peak;
    });
    if (!known) panel.roofs.push_back(roof);
  }

  void add_line(std::vector<FigureLine>& lines, const FigureLine& line) const {
    if (!drawable(line.y, source_.y)) return;
    const bool known = std::any_of(lines.begin(), lines.end(),
                                   [&](const FigureLine& one) { return one.y == line.y && one.label == line.label; });
    if (!known) lines.push_back(line);
  }

  void tidy(FigurePanel& panel) {
    std::sort(panel.series.begin(), panel.series.end(),
              [](const FigureSeries& a, const FigureSeries& b) { return a.style < b.style; });
    for (FigureSeries& series : panel.series) {
      std::stable_sort(series.points.begin(), series.points.end(), [](const FigurePoint& a, const FigurePoint& b) {
        return std::pair(!a.apart, a.x) < std::pair(!b.apart, b.x);
      });
      if (source_.kind == FigureKind::trace && series.points.size() > kMostSamples) thin(series);
    }
    if (source_.kind == FigureKind::areas) align_steps(panel);
    if (lanes()) join_intervals(panel);
  }

  // The value of every series wherever one of them changes; of more moments than can be seen, that with the largest sum
  // in each of kRanges ranges, so that peaks stay.
  void align_steps(FigurePanel& panel) {
    std::set<double> moments;
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) moments.insert(point.x);
    }
    std::vector<std::vector<double>> values(panel.series.size());
    std::vector<double> sums(moments.size(), 0.0);
    for (std::size_t s = 0; s < panel.series.size(); ++s) {
      const std::vector<FigurePoint>& points = panel.series[s].points;
      std::size_t next = 0, at = 0;
      double value = 0;
      for (const double moment : moments) {
        while (next < points.size() && points[next].x <= moment) value = points[next++].y;
        values[s].push_back(value);
        sums[at++] += value;
      }
    }
    const std::vector<double> xs(moments.begin(), moments.end());
    const std::size_t n = xs.size(), ranges = std::min(n, kRanges);
    for (FigureSeries& series : panel.series) series.points.clear();
    for (std::size_t range = 0; range < ranges; ++range) {
      const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(range * n / ranges),
                 end = sums.begin() + static_cast<std::ptrdiff_t>((range + 1) * n / ranges);
      const auto top = static_cast<std::size_t>(std::max_element(begin, end) - sums.begin());
      for (std::size_t s = 0; s < panel.series.size(); ++s) {
        panel.series[s].points.push_back({.x = xs[top], .y = values[s][top]});
      }
    }
    if (n > kRanges) {
      add_once(data_.notes, fmt::format("Of {} moments, {} are drawn: the highest of each stretch.", n, kRanges));
    }
  }

  // Merges intervals of a lane and series that the eye could not separate.
  void join_intervals(FigurePanel& panel) {
    double first = kNone, last = kNone;
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        first = std::fmin(first, point.x);
        last = std::fmax(last, point.end);
      }
    }
    const double least = (last - first) / kLaneSteps, wide = (last - first) / kWideSteps;
    const auto is_wide = [wide](const FigurePoint& one) { return one.end - one.x > wide; };
    for (FigureSeries& series : panel.series) {
      std::vector<FigurePoint> kept;
      std::map<double, std::size_t> newest;  // of a lane, in `kept`
      for (const FigurePoint& point : series.points) {
        const auto before = newest.find(point.y);
        const bool near = before != newest.end() && point.x - kept[before->second].end < least;
        if (near && !(is_wide(point) && is_wide(kept[before->second]))) {
          kept[before->second].end = std::max(kept[before->second].end, point.end);
        } else {
          newest[point.y] = kept.size();
          kept.push_back(point);
        }
      }
      for (FigurePoint& point : kept) {
        const double width = point.end - point.x;
        if (width >= least) point.end = point.x + std::max(width, (last - first) / kNarrowSteps);
      }
      series.points = std::move(kept);
    }
  }

  // Ranges of as many samples each; what is flagged stays a sample of its own.
  void thin(FigureSeries& series) {
    std::vector<FigurePoint> kept;
    const std::size_t n = series.points.size();
    for (std::size_t range = 0; range < kRanges; ++range) {
      const std::size_t begin = range * n / kRanges, end = (range + 1) * n / kRanges;
      FigurePoint all = series.points[begin + (end - begin) / 2];
      all.low = all.high = all.y;
      all.flagged = false;
      for (std::size_t i = begin; i < end; ++i) {
        all.low = std::min(all.low, series.points[i].y);
        all.high = std::max(all.high, series.points[i].y);
      }
      kept.push_back(all);
    }
    std::size_t flagged = 0;
    for (const FigurePoint& point : series.points) {
      if (point.flagged && ++flagged <= kRanges) kept.push_back(point);
    }
    add_once(data_.notes,
             fmt::format("{} samples are drawn as {} ranges from their smallest to their largest.", n, kRanges));
    series.points = std::move(kept);
  }

  void tell() {
    std::vector<std::string>& notes = data_.notes;
    if (!failed_.empty()) notes.push_back(unmarked(fmt::format("Not drawn: {}.", few(failed_))));
    if (not_numbers_ > 0) {
      notes.push_back(
          fmt::format("{} {} outside the axes left out.", not_numbers_, not_numbers_ == 1 ? "point" : "points"));
    }
    const auto left_out = [&](const std::set<std::string>& names, std::string_view what) {
      if (names.empty()) return;
      notes.push_back(fmt::format("{} further {} are in the tables only ({}).", names.size(), what,
                                  unmarked(few({names.begin(), names.end()}))));
    };
    left_out(other_series_, "series");
    left_out(other_panels_, "panels");
    left_out(other_categories_, lanes() ? "lanes" : "groups of bars");
    for (const FigureCeiling& ceiling : source_.ceilings) {
      const bool known = std::any_of(data_.panels.begin(), data_.panels.end(), [&](const FigurePanel& panel) {
        return std::any_of(panel.ceilings.begin(), panel.ceilings.end(),
                           [&](const FigureLine& line) { return line.label == ceiling.label; });
      });
      if (!known && !ceiling.command.empty() && !data_.panels.empty()) {
        notes.push_back(fmt::format("No {} measured on this machine: `{}`.", ceiling.label, ceiling.command));
      }
    }
    const bool roofless = std::any_of(data_.panels.begin(), data_.panels.end(),
                                      [](const FigurePanel& panel) { return panel.roofs.empty(); });
    if (source_.kind == FigureKind::roofline && roofless) {
      notes.push_back(
          "Where no roof is drawn, this machine's ceilings have not been measured: `syslab run ceiling_copy "
          "ceiling_gemm` would.");
    }
  }

  const FigureSource& source_;
  const store::ResultSet& result_;
  FigureData data_;
  std::vector<std::string> telling_;  // columns of the panel that differ
  std::vector<std::string> panel_names_, failed_;
  std::set<std::string> other_series_, other_panels_, other_categories_;
  std::size_t not_numbers_ = 0;
};

}  // namespace

FigureData figure_data(const FigureSource& source, const store::ResultSet& result) {
  return Reader(source, result).read();
}

}  // namespace syslab::report
