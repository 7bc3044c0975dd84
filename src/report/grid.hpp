// A table as displayed: which columns are shown, and each cell's text and style. Shared by all formats for people.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/table.hpp"
#include "report/text.hpp"

namespace syslab::report {

struct GridCell {
  Span span;
  std::string value;  // at full precision, to sort by; empty where there is none
};

struct Grid {
  std::vector<Column> columns;
  std::vector<std::vector<GridCell>> rows;
};

Grid grid_of(const Table& table);
// Of a query: every column as it is called, numbers at full precision, NULL as a word.
Grid grid_of(const store::ResultSet& result);

// One cell; grid_of() makes all.
GridCell grid_cell(const Table& table, std::size_t row, const Column& column);

// What stands beneath a table, marked: what every row has in common in columns that are not shown, without what is
// none, 0 or in the footnote, and the footnote.
std::string foot_of(const Table& table);

// What a table or sentence without a row says: its `empty`, or "Not measured" with the command that would measure.
Text without_rows(const Table& table);
// What a sentence says of its case beside its results: "precision" is "fp32".
using Circumstances = std::map<std::string, std::string>;
// How a sentence of a hand-in is shorter than that of the appendix: an interval that leaves three digits is left out,
// and so are the protocol, the device that the first page names, and in brackets what the problem's last sentence said
// of its own case.
struct Brevity {
  bool brief = false;
  std::string device;
  Circumstances said;
};
struct Sentence {
  Text text;  // without the marks of a run
  Circumstances said;
  bool smoke = false;
  bool self_reported = false;
  bool lacks = false;   // part of it is not measured, and it names the command that would (the query's column `lacks`)
  Text marked() const;  // a smoke run's and a self-reported one's say so
};
// The filled sentences of a source that is one, a row each.
std::vector<Sentence> sentences(const Table& table, const Brevity& brevity = {});
// The one of them that is said where a table has one alone. `gpus`: in the order in which one is taken. What it says of
// its case is what the next need not, by `brevity`.
std::optional<Sentence> best_sentence(const Table& table, Brevity& brevity, const std::vector<std::string>& gpus);

// "time" or "head dim": underscores are spaces.
std::string heading_of(const Column& column);
// "[ms]", empty where the unit is 1 or stands in every cell.
std::string unit_of(const Column& column);

}  // namespace syslab::report
