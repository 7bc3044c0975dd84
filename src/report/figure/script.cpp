#include "report/figure/script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "core/text/text.hpp"
#include "report/figure/axis.hpp"
#include "report/figure/gnuplot.hpp"
#include "report/figure/labels.hpp"
#include "report/figure/plots.hpp"
#include "report/figure/style.hpp"
#include "report/figure/text.hpp"

namespace syslab::report {
namespace {

// In pixels of the SVG; the PDF has the same proportions.
constexpr double kWidth = 720, kSoloHeight = 360, kPanelHeight = 250;
constexpr double kLine = 16;      // of text
constexpr double kCharacter = 7;  // on average, of the wider sans-serif fonts that readers have
constexpr double kGap = 14, kSwatch = 22, kRightEdge = 10, kTicRoom = 14, kTicWidth = 40;
constexpr std::size_t kLongestName = 24, kLongestAlone = 40, kLongestBeside = 12, kMostTitleLines = 3;
constexpr double kPixelsAnInch = 96;

double longest_of(const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, characters(fitted(text, kLongestName)));
  return static_cast<double>(longest);
}

class Script {
 public:
  Script(const FigureData& data, Terminal terminal, int number)
      : data_(data), terminal_(terminal), plots_(data, terminal, number) {
    columns_ = data.panels.size() > 1 ? 2 : 1;
    rows_ = (data.panels.size() + columns_ - 1) / columns_;
    height_ = columns_ == 1 ? kSoloHeight : kPanelHeight * static_cast<double>(rows_);
    panel_width_ = kWidth / static_cast<double>(columns_);
    for (const FigurePanel& panel : data.panels) title_lines_ = std::max(title_lines_, title_of(panel).size());
    if (title_lines_ > 1) height_ += kLine * static_cast<double>((title_lines_ - 1) * rows_);
    make_legend();
    height_ += legend_height_;
    make_axes();
  }

  std::string write(const std::filesystem::path& output) {
    line("reset session");
    if (terminal_ == Terminal::svg) {
      line("set terminal svg size {:.0f},{:.0f} dynamic noenhanced font 'sans-serif,12' rounded", kWidth, height_);
    } else {
      line(
          "set terminal pdfcairo size {:.4f}in,{:.4f}in noenhanced font 'sans-serif,7.5' fontscale 1 rounded linewidth "
          "2",
          kWidth / kPixelsAnInch, height_ / kPixelsAnInch);
    }
    line("set output {}", gnuplot_string(output.string()));
    line("set multiplot");
    line("unset key\nset pointintervalbox 0\nset border 3 lw 1 lc rgb '{}'", ink());
    line("set grid back lt 1 lw 1 lc rgb '{}'", terminal_ == Terminal::svg ? kFaintInk : "#dddddd");
    for (std::size_t i = 0; i < data_.panels.size(); ++i) draw(i);
    line("unset multiplot\nunset output");
    return std::move(text_);
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }

  const char* ink() const { return ink_of(terminal_); }
  bool stacks() const { return data_.kind == FigureKind::stacks; }
  bool bars() const { return has_bars(data_.kind); }
  bool areas() const { return data_.kind == FigureKind::areas; }
  bool lanes() const { return data_.kind == FigureKind::lanes; }
  bool filled() const { return is_filled(data_.kind); }
  bool trace() const { return data_.kind == FigureKind::trace; }

  // --- scales: the same for all panels, but for the times of a trace, which differ from case to case ---

  void collect(const FigurePanel& panel, std::vector<double>& xs, std::vector<double>& ys) const {
    const auto add = [&](double y, double low, double high) {
      for (const double value : {y, low, high}) {
        if (std::isfinite(value)) ys.push_back(value);
      }
    };
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        if (!point.apart) xs.push_back(point.x);
        if (lanes()) xs.push_back(point.end);
        add(point.y, point.low, point.high);
      }
    }
    if (stacks() || areas()) {
      std::map<double, double> sums;
      for (const FigureSeries& series : panel.series) {
        for (const FigurePoint& point : series.points) ys.push_back(sums[point.x] += point.y);
      }
    }
    for (const auto* lines : {&panel.ceilings, &panel.middles}) {
      for (const FigureLine& one : *lines) add(one.y, one.low, one.high);
    }
    for (const FigureRoof& roof : panel.roofs) {
      xs.push_back(ridge(roof));
      ys.push_back(roof.peak);
    }
  }

  static double ridge(const FigureRoof& roof) { return roof.peak / roof.bandwidth * 1e3; }

  void make_axes() {
    std::vector<double> xs;
    std::vector<std::vector<double>> ys(trace() ? data_.panels.size() : 1);
    for (std::size_t i = 0; i < data_.panels.size(); ++i) collect(data_.panels[i], xs, ys[trace() ? i : 0]);
    const double plot_height = (columns_ == 1 ? kSoloHeight : kPanelHeight) - 80;
    std::size_t widest = 1;
    for (const std::vector<double>& values : ys) {
      y_axes_.push_back(make_axis(data_.y_scale, values, !trace(), static_cast<int>(plot_height / 28)));
      for (const Tic& tic : y_axes_.back().tics) widest = std::max(widest, characters(tic.label));
    }
    if (lanes()) widest = make_axis_of_lanes();
    right_ = right_margin();
    left_ = static_cast<double>(widest) * kCharacter + kTicRoom;
    const double plot_width = panel_width_ - left_ - right_;
    if (bars()) {
      make_axis_of_categories(plot_width);
    } else {
      x_axis_ = make_axis(data_.x_scale, xs, false, static_cast<int>(plot_width / kTicWidth));
      if (data_.x_label.ends_with(" (B)")) name_bytes(x_axis_);
      thin_labels(x_axis_, plot_width, kCharacter, kGap / 2);
      if (!data_.apart.empty()) {
        if (xs.empty()) x_axis_.tics.clear();
        apart_ends_ = x_axis_.low;
        apart_places_ = make_room_beside(x_axis_, data_.apart, longest_of(data_.apart) * kCharacter + kGap, plot_width);
      }
    }
  }

  // --- the legend of what is filled, or has long names: below the panels, once ---

  bool legend_below() const {
    if (!data_.has_names()) return false;
    // Next to a narrow panel there is little space for line names.
    const bool too_long = columns_ > 1 && std::ranges::any_of(data_.names, [](const std::string& name) {
                            return characters(name) > kLongestBeside;
                          });
    return bars() || filled() || too_long;
  }
  // For labels next to a panel.
  std::size_t longest_name() const { return columns_ > 1 ? kLongestName : kLongestAlone; }

  void make_legend() {
    if (!legend_below()) return;
    legend_ = legend_of(data_.names, kWidth - kRightEdge, kSwatch + 5, kGap, kCharacter, kLine + 2);
    legend_height_ = legend_.back().y + 2 * kLine;
  }

  void draw_legend() {
    const double top = height_ - legend_height_ + kLine / 2;
    for (std::size_t i = 0; i < legend_.size(); ++i) {
      const LegendEntry& entry = legend_[i];
      swatch(entry.x, top + entry.y, i);
      place_text(entry.x + kSwatch + 5, top + entry.y, entry.text, "left");
    }
  }

  // The sample of a series' style, kSwatch pixels wide from `left` on.
  void swatch(double left, double at, std::size_t series) {
    const double y = 1 - at / height_, half = 5 / height_;
    if (bars() || filled()) {
      line("set object rectangle from screen {:.5f},{:.5f} to screen {:.5f},{:.5f} fillcolor rgb '{}' {}",
           (left + 6) / kWidth, y - half, (left + kSwatch - 4) / kWidth, y + half, colour_of(data_.kind, series),
           fill_of(data_.kind, series, ink()));
      return;
    }
    const SeriesStyle style = style_of(series);
    if (data_.kind == FigureKind::lines) {
      line("set arrow from screen {0:.5f},{1:.5f} to screen {2:.5f},{1:.5f} nohead lw 1.8 dt {3} lc rgb '{4}'",
           left / kWidth, y, (left + kSwatch) / kWidth, style.dash, style.colour);
    }
    line("set label '' at screen {:.5f},{:.5f} point pt {} ps 0.55 lc rgb '{}'", (left + kSwatch / 2) / kWidth, y,
         trace() ? 7 : style.mark, style.colour);
  }

  // The first lane is on top. Returns the length of the longest name.
  std::size_t make_axis_of_lanes() {
    std::size_t longest = 1;
    Axis& axis = y_axes_.front();
    axis = {};
    axis.low = -0.5;
    axis.high = static_cast<double>(data_.categories.size()) - 0.5;
    for (std::size_t i = data_.categories.size(); i-- > 0;) {
      axis.tics.push_back({lane_at(data_, static_cast<double>(i)), fitted(data_.categories[i], kLongestName)});
      longest = std::max(longest, characters(axis.tics.back().label));
    }
    return longest;
  }

  void make_axis_of_categories(double plot_width) {
    x_axis_.low = -0.5;
    x_axis_.high = static_cast<double>(data_.categories.size()) - 0.5;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < data_.categories.size(); ++i) {
      x_axis_.tics.push_back({static_cast<double>(i), fitted(data_.categories[i], kLongestName)});
      longest = std::max(longest, characters(x_axis_.tics.back().label));
    }
    const double length = static_cast<double>(longest) * kCharacter;
    slanted_ = length > plot_width / static_cast<double>(data_.categories.size()) - 4;
    if (slanted_) slant_room_ = length * 0.5;
  }

  double right_margin() const {
    std::size_t longest = 0;
    if (data_.has_names() && !legend_below()) {
      for (const std::string& name : data_.names) longest = std::max(longest, characters(fitted(name, longest_name())));
    }
    for (const FigurePanel& panel : data_.panels) {
      for (const auto* lines : {&panel.ceilings, &panel.middles}) {
        for (const FigureLine& one : *lines) longest = std::max(longest, characters(fitted(one.label, longest_name())));
      }
    }
    if (longest == 0) return kRightEdge + kGap;
    return kSwatch + 14 + static_cast<double>(longest) * kCharacter + kRightEdge;
  }

  // --- one panel ---

  void draw(std::size_t index) {
    const FigurePanel& panel = data_.panels[index];
    const double x = panel_width_ * static_cast<double>(index % columns_);
    const double row = (height_ - legend_height_) / static_cast<double>(rows_);
    const double y = row * static_cast<double>(index / columns_);
    const double above = kLine * static_cast<double>(1 + title_lines_) + 10;
    box_ = {x + left_, y + above, panel_width_ - left_ - right_, row - above - 2 * kLine - 12 - slant_room_};
    line("unset label\nunset arrow\nunset object");
    line("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}", box_.x / kWidth, (box_.x + box_.w) / kWidth);
    line("set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}", 1 - box_.y / height_,
         1 - (box_.y + box_.h) / height_);
    scale('x', x_axis_);
    y_axis_ = y_axes_[trace() ? index : 0];
    scale('y', y_axis_);
    const std::vector<std::string> title = title_of(panel);
    for (std::size_t i = 0; i < title.size(); ++i) {
      // The last line stands on the axis' name, whatever others have above it.
      const auto below = static_cast<double>(title.size() - 1 - i);
      place_text(x + 4, box_.y - 12 - kLine * (1 + below), title[i], "left");
    }
    if (!lanes()) place_text(x + 4, box_.y - 12, fitted(data_.y_label + roof_text(panel), most_characters()), "left");
    place_text(box_.x + box_.w / 2, box_.y + box_.h + kLine + 16 + slant_room_,
               fitted(data_.x_label, most_characters()), "center");
    lines_across(panel);
    label_ends(panel);
    if (index == 0) draw_legend();
    text_ += plots_.commands(panel, x_axis_, box_.w, apart_places_);
  }

  std::size_t most_characters() const { return static_cast<std::size_t>((panel_width_ - 8) / kCharacter); }

  std::vector<std::string> title_of(const FigurePanel& panel) const {
    return panel.title.empty() ? std::vector<std::string>{} : in_lines(panel.title, most_characters(), kMostTitleLines);
  }

  std::string roof_text(const FigurePanel& panel) const {
    std::vector<std::string> roofs;
    for (const FigureRoof& roof : panel.roofs) {
      roofs.push_back(fmt::format("{:.3g} GB/s, {:.3g} TFLOP/s", roof.bandwidth, roof.peak));
    }
    return roofs.empty() ? "" : fmt::format("; roof {}", fmt::join(roofs, " and "));
  }

  void scale(char name, const Axis& axis) {
    line("set {}range [{:.9g}:{:.9g}]", name, axis.low, axis.high);
    if (axis.logarithmic) {
      line("set logscale {} {:g}", name, axis.base);
    } else {
      line("unset logscale {}", name);
    }
    std::vector<std::string> tics;
    for (const Tic& tic : axis.tics) {
      tics.push_back(fmt::format("{} {:.9g} {}", gnuplot_string(tic.label), tic.at, tic.label.empty() ? 1 : 0));
    }
    const bool slanted = name == 'x' && slanted_;
    line("set {}tics nomirror out scale {} {} offset {} font ',{}' textcolor rgb '{}' ({})", name,
         bars() && name == 'x' ? "0" : "0.5,0.3", slanted ? "rotate by 25 right" : "norotate",
         slanted       ? "0,-0.1"
         : name == 'x' ? "0,0.4"
                       : "0.5,0",
         terminal_ == Terminal::svg ? "11" : "6.9", ink(), fmt::join(tics, ", "));
  }

  void place_text(double x, double y, const std::string& text, const char* side) {
    line("set label {} at screen {:.5f},{:.5f} {} textcolor rgb '{}'", gnuplot_string(text), x / kWidth,
         1 - y / height_, side, ink());
  }

  void lines_across(const FigurePanel& panel) {
    for (const FigureLine& ceiling : panel.ceilings) {
      line("set arrow from graph 0, first {0:.9g} to graph 1, first {0:.9g} nohead lw 1.2 dt (5,3) lc rgb '{1}'",
           ceiling.y, ink());
    }
    if (!data_.apart.empty()) {
      line("set arrow from first {0:.9g}, graph 0 to first {0:.9g}, graph 1 nohead lw 1 dt (2,4) lc rgb '{1}'",
           apart_ends_, ink());
    }
    for (const FigureLine& middle : panel.middles) {
      if (std::isfinite(middle.low) && std::isfinite(middle.high)) {
        line(
            "set object rectangle from graph 0, first {:.9g} to graph 1, first {:.9g} behind "
            "fillcolor rgb '{}' fillstyle transparent solid 0.18 noborder",
            middle.low, middle.high, ink());
      }
      line("set arrow from graph 0, first {0:.9g} to graph 1, first {0:.9g} nohead lw 1.5 lc rgb '{1}'", middle.y,
           ink());
    }
  }

  double pixel_of(double y) const { return box_.y + box_.h * (1 - y_axis_.place(y)); }

  void label_ends(const FigurePanel& panel) {
    std::vector<EndLabel> labels;
    for (const FigureSeries& series : panel.series) {
      if (!data_.has_names() || legend_below()) break;
      labels.push_back({pixel_of(series.points.back().y), data_.names[series.style], series.style, false});
    }
    for (const FigureLine& ceiling : panel.ceilings) labels.push_back({pixel_of(ceiling.y), ceiling.label, {}, true});
    for (const FigureLine& middle : panel.middles) labels.push_back({pixel_of(middle.y), middle.label, {}, false});
    spread(labels, box_.y + 4, box_.y + box_.h - 4, kLine - 1);
    const double left = box_.x + box_.w + 6;
    for (const EndLabel& label : labels) {
      if (label.series) {
        swatch(left, label.at, *label.series);
      } else {
        line("set arrow from screen {0:.5f},{1:.5f} to screen {2:.5f},{1:.5f} nohead lw 1.2 dt {3} lc rgb '{4}'",
             left / kWidth, 1 - label.at / height_, (left + kSwatch) / kWidth, label.broken ? "(5,3)" : "solid", ink());
      }
      place_text(left + kSwatch + 5, label.at, fitted(label.text, longest_name()), "left");
    }
  }

  struct Box {
    double x = 0, y = 0, w = 0, h = 0;
  };

  const FigureData& data_;
  Terminal terminal_;
  FigurePlots plots_;
  std::size_t columns_ = 1, rows_ = 1;
  double height_ = 0, panel_width_ = 0, left_ = 0, right_ = 0, slant_room_ = 0;
  bool slanted_ = false;
  std::vector<LegendEntry> legend_;
  double legend_height_ = 0;
  std::vector<double> apart_places_;  // on the x axis, by FigureData::apart
  double apart_ends_ = 0;             // and where the axis proper begins
  std::size_t title_lines_ = 0;       // of the panel with most
  std::vector<Axis> y_axes_;          // one, or one a panel
  Axis x_axis_, y_axis_;
  Box box_;
  std::string text_;
};

}  // namespace

std::string figure_script(const FigureData& data, Terminal terminal, const std::filesystem::path& output, int number) {
  return Script(data, terminal, number).write(output);
}

}  // namespace syslab::report
