// What gnuplot plots of one panel: its series and roofs as blocks of data, and how each is drawn.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "report/figure/axis.hpp"
#include "report/figure/data.hpp"
#include "report/figure/script.hpp"

namespace syslab::report {

// Of kinds of figures: those whose series are bars, and those whose areas are filled and told apart by kFills.
bool has_bars(FigureKind kind);
bool is_filled(FigureKind kind);

const char* ink_of(Terminal terminal);
// How a series is filled, and with what: words after `fillcolor rgb`.
const char* colour_of(FigureKind kind, std::size_t series);
std::string fill_of(FigureKind kind, std::size_t series, const char* ink);

// Where a lane lies on the y axis: the first is on top.
double lane_at(const FigureData& data, double category);

// Of one figure. Both must outlive it.
class FigurePlots {
 public:
  FigurePlots(const FigureData& data, Terminal terminal, int number)
      : data_(data), ink_(ink_of(terminal)), number_(number) {}

  // The commands that define the panel's data and plot it, within `width` pixels of the axis `x`, on which
  // FigureData::apart has the places `apart`.
  std::string commands(const FigurePanel& panel, const Axis& x, double width, const std::vector<double>& apart);

 private:
  bool is(FigureKind kind) const { return data_.kind == kind; }
  std::string block(const std::vector<std::string>& rows);
  std::string area(const FigureSeries& series, std::map<double, double>& below);
  std::string boxes(const FigureSeries& series, std::map<double, double>& below);
  std::string roof_line(const FigureRoof& roof, const Axis& x);
  void add_series(const FigureSeries& series, double offset, const std::vector<double>& apart, double dot_length,
                  std::vector<std::string>& drawn);

  const FigureData& data_;
  const char* ink_;
  int number_, blocks_ = 0;
  std::string text_;  // of the blocks so far
};

}  // namespace syslab::report
