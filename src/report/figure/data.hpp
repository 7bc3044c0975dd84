// A figure's query result, ordered for drawing: panels of series of points. Independent of gnuplot.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "report/figure/figure.hpp"

namespace syslab::report {

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct FigurePoint {
  double x = 0, y = 0;
  double low = kNone, high = kNone;  // both numbers or neither
  double end = kNone;                // of an interval in a lane that begins at x
  bool flagged = false;
  bool apart = false;  // x is a place in FigureData::apart
};

struct FigureSeries {
  std::size_t style = 0;  // the same in every panel; names[style]
  std::vector<FigurePoint> points;
};

// A horizontal line with its name; with ends, a band about it.
struct FigureLine {
  double y = 0, low = kNone, high = kNone;
  std::string label;
};

struct FigureRoof {
  double bandwidth = 0;  // GB/s
  double peak = 0;       // TFLOP/s
};

struct FigurePanel {
  std::string title;
  std::vector<FigureSeries> series;
  std::vector<FigureLine> ceilings, middles;
  std::vector<FigureRoof> roofs;
};

struct FigureData {
  FigureKind kind = FigureKind::lines;
  std::string x_label, y_label;  // "seq (tokens)"
  std::string x_scale, y_scale;
  std::vector<std::string> names;       // of the series, in order of appearance
  std::vector<std::string> categories;  // of bars and stacks: the texts at x = 0, 1, …; of lanes, at y
  std::vector<std::string> apart;       // the texts next to the axis, from the outside inwards
  std::vector<FigurePanel> panels;      // none: nothing can be drawn
  std::string common;                   // what all panels share: "model xl, context 512, device NVIDIA H200"
  std::vector<std::string> notes;       // what is not in the picture, and why

  // Names are shown next to the picture: not where there is but one, of samples or bars that nothing else is confused
  // with.
  bool has_names() const {
    const bool alone = kind == FigureKind::trace || kind == FigureKind::bars || kind == FigureKind::lanes;
    return names.size() > 1 || (!alone && names.size() == 1 && !names.front().empty());
  }
};

// Error(internal) when a column that the header names is not in the result.
FigureData figure_data(const FigureSource& source, const store::ResultSet& result);

// The rate under the roof at an intensity in FLOP/byte, in TFLOP/s.
inline double under(const FigureRoof& roof, double intensity) {
  return std::fmin(roof.bandwidth * intensity * 1e-3, roof.peak);
}

}  // namespace syslab::report
