// A figure of the report: one .sql file with a header of comments, its result, and the picture that gnuplot draws of
// it.
//
//   -- figure: lines
//   -- title: Time over sequence length
//   -- caption: Median time of one call; the bars are 95 % intervals.
//   -- experiment: flash_forward
//   -- x: seq|tokens|log2
//   -- y: time|ms|log10
//   -- interval: low, high
//   -- series: implementation
//   -- panel: panel
//   -- ceiling: ceiling|measured ceiling|syslab run ceiling_gemm
//   -- note: Both axes are logarithmic.
//   -- command: syslab run {experiment}
//   SELECT …
//
// Kinds:
//   lines     y over x, a line a series
//   bars      y over the words of x, a bar a series
//   stacks    the same with the bars of one word on top of each other: parts of a whole
//   areas     y over x as steps, one series on top of the other: what adds up at any time. Each series keeps its value
//             from one x to its next
//   lanes     intervals from x to `end: column`, in a lane for each word of y, first come on top: what ran when
//   roofline  rate over arithmetic intensity under a roof; `roof: bandwidth|peak` names the columns of its two slopes
//   trace     y in the order of x (samples in order of time); `middle: median, low, high` draws a line and its
//             interval, `flag: column` marks samples where it is not 0
// Every kind:
//   x, y      column|unit|scale; unit 1 for none, y in bytes (MiB, GiB) in a smaller one if all are below 1; scales
//             linear, log2, log10, text (bars, stacks: x; lanes: y), auto (logarithmic if the values span more than a
//             factor of ten). `x_name: column` takes the axis' name from the result.
//   interval  columns of the lower and upper end
//   series    column with values that distinguish series; each keeps its colour, line and mark in all panels
//   apart     of lines: column with a text, if there is one, that takes a point off the axis and off its line: it is
//             drawn next to the axis, under that text ("all kept" next to segments of 1, 2, 4 blocks)
//   panel     columns, separated by ','; their values are drawn next to each other with one pair of scales, in order of
//             appearance; a panel's title shows those that differ ("dtype fp32, mask causal"), of a column `panel` the
//             value alone; the caption ends with those that do not ("Throughout: model xl, context 512.")
//   ceiling   column|label|command: a horizontal line for each of its values in a panel; the command is what would
//             measure it, shown in a note if the column is empty. More of them separated by ';'
//   fills     parts of the experiment's problem for which this is the figure, as in a table (table.hpp)
//   optional: yes  a figure without a row is left out, instead of saying "not measured" with `command` or `empty`
// Rows with a column `status` other than 'ok' and no y are named next to the picture: they are not drawn. `run_uid`
// tells where the numbers come from, as in a table. ?1 in the SELECT is the experiment's id.
//
// Found in experiments/FAMILY/ID/figures/ and, for all experiments, in reports/figures/; an experiment's own hides a
// shared one of the same name.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace syslab::report {

// An axis, or a horizontal line: which column, what it is called and how it is drawn.
struct FigureAxis {
  std::string column, unit, scale;
};

struct FigureCeiling {
  std::string column, label, command;
};

enum class FigureKind { lines, bars, stacks, areas, lanes, roofline, trace };

struct FigureSource {
  std::string id;    // file name without .sql: "time"
  std::string file;  // from the source root
  FigureKind kind = FigureKind::lines;
  std::string experiment, title, caption, command, empty;
  FigureAxis x, y;
  std::vector<std::string> panel;               // columns
  std::string x_name, low, high, series, flag;  // columns; empty: none
  std::string end;                              // of lanes: where an interval ends
  std::string apart;                            // of lines: what is drawn next to the axis
  std::string middle, middle_low, middle_high;  // of a trace
  std::string bandwidth, peak;                  // of a roofline, GB/s and TFLOP/s
  std::vector<FigureCeiling> ceilings;
  std::vector<std::string> notes;
  std::vector<std::string> fills;
  bool optional = false;
  std::string sql;
};

// Error(internal) naming the line when the header is malformed or incomplete.
FigureSource parse_figure(const std::string& id, const std::string& text);

// The figures that this binary carries for an experiment: its own, then the shared ones, by name, bound to it.
std::vector<FigureSource> figures_of(const std::string& experiment);

struct Figure {
  std::string id, experiment, title, caption;
  std::string svg;      // begins with <svg, no XML prologue: a file as it is, and inline in HTML; empty: see `missing`
  std::string pdf;      // the bytes of the file, when asked for
  std::string missing;  // why there is no picture: "Not measured: `syslab run …`.", "gnuplot is not installed"
  std::vector<std::string> notes;  // the source's, and what was left out of the picture
  std::string warning;             // as a table's: "Smoke run …"
  std::string footnote;            // as a table's: device, protocol, revision, run, command
  std::vector<std::string> fills;  // as its source says
  std::string file;                // likewise
};

struct DrawOptions {
  bool pdf = false;
  std::string handout;              // whose models alone are drawn, by its names (handout_models.hpp); empty: all
  std::string gnuplot = "gnuplot";  // looked up in PATH
  std::chrono::milliseconds timeout{60000};  // of the one process that draws everything
};

// One figure a source, in order, but for optional ones without a row. All pictures come from one gnuplot process; what
// it did not draw has its reason in `missing`. The same data give the same SVG to the byte (with the same gnuplot); PDF
// holds the time it was made.
std::vector<Figure> draw_figures(std::span<const FigureSource> sources, const store::Store& store,
                                 const DrawOptions& options = {});

}  // namespace syslab::report
