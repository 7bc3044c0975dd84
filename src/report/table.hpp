// A table or a sentence of the report: one .sql file with a header of comments, its result, and the ways it is written.
//
//   -- title: FlashAttention-2 forward
//   -- caption: Median time of one call with its 95 % interval.
//   -- about vs_naive: `vs naive` is the speed-up over the kernel that materialises the scores.
//   -- experiment: flash_forward
//   -- columns: seq|1|d|right; time|ms|ci(low, high)|right; vs_naive|×|.3g|right; causal?|1|flag|left
//   -- note: Rates count unmasked pairs only.
//   -- command: syslab run {experiment}
//   -- empty: Nothing failed.
//   -- fills: b, c
//   SELECT …
//
// A column is name|unit|format|align, found in the result by its name; other columns of the result are not shown but
// serve formats (low, high), missing values (`status`, `message`) and the footnote (`run_uid`). "time_ms as time" is
// headed by another name; a name that ends in '?' is a column only where its values differ: what every row has in
// common stands beneath the table. "@timed" stands for a list of reports/columns.txt. Units: 1 for none. Formats:
// cells.hpp. A header line may be continued by lines that begin with "--   ".
//
// The caption of a table is `caption`, which holds for the whole table, and after it the sentences of the `about` lines
// in their order. `about COLUMN[, COLUMN]: Sentence.` explains columns, given by their names (not their headings): a
// hand-in that leaves one of them out leaves out the sentence.
//
// A missing value of a row that went well reads "not measured". Where it means another thing, `blank: –` says how it
// reads and the caption what it means: a table has one word for each.
//
// Without a row the table reads "not measured" with `command`, or the text of `empty`.
//
// `fills` names the parts of the experiment's problem that this answers (deliverables.hpp), "*" the only one of a
// problem without parts: a sentence fills what is asked for in words, a table what is asked for as a table or as code.
//
// With `sentence:` instead of `title:` the file is a sentence: {name} takes the value of a column, a sentence a row.
// It is of what was measured here, if that has a row; with `origins: all` of everything, and says itself what came by
// merge or import.
// ?1 in the SELECT is the experiment's id; ?2 is the published numbers (published.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"

namespace syslab::report {

inline constexpr std::string_view kCodeFormat = "code";  // names as a program has them

struct Column {
  std::string name, unit, format, align;
  bool only_if_varies = false;
  std::string label;  // what heads it; empty: its name
  double factor = 1;  // of what is shown, where `unit` is not the declared one (byte_unit.hpp)

  const std::string& heading() const { return label.empty() ? name : label; }
};

inline bool is_code(const Column& column) { return column.format == kCodeFormat; }

// One sentence of a caption, or several, and the columns that it explains.
struct Explanation {
  std::vector<std::string> columns;  // names
  std::string text;
};

struct TableSource {
  std::string id;    // file name without .sql: "flash_forward"
  std::string file;  // from the source root; empty: it was never one
  std::string experiment, title;
  std::string caption;  // what holds for the whole table
  std::vector<Explanation> about;
  std::string sentence;  // not empty: a sentence, no table
  bool of_all_origins = false;
  std::string command;  // what would measure it; "syslab run {experiment}" where the header says nothing
  std::string empty;    // what no row means, where it does not mean "not measured"
  std::string blank;    // how a missing value reads, likewise
  std::vector<Column> columns;
  std::vector<std::string> notes;
  std::vector<std::string> fills;  // parts of the problem
  std::string sql;
};

// The text above the table: its caption, then the sentences about its columns.
std::string whole_caption(const TableSource& source);

// Error(internal) naming the line when the header is malformed or incomplete.
TableSource parse_table(const std::string& id, const std::string& text);

struct Table {
  TableSource source;
  store::ResultSet result;
  std::string warning;                     // "Smoke run …"; empty where the numbers are results
  std::vector<std::string> smoke_runs;     // uids of runs with numbers that are not results
  std::vector<std::string> self_reported;  // uids of runs that were not measured here
  std::string footnote;                    // device, protocol, revision, run, and the command that remakes the table
};

// Runs the query. Error(internal) when a declared column, or an end of its interval, is not in the result. `experiment`
// is bound to ?1 and is the source's own where empty.
Table fill(const TableSource& source, const store::Store& store, const std::string& experiment = {});

enum class Format { markdown, latex, html, csv, json };
// Markdown, LaTeX (a bare tabular) and HTML show what a reader needs: formatted, with words where a number is missing.
// CSV and JSON carry every column of the result at full precision, and nothing (null) where there is nothing.
std::string write(const Table& table, Format format);
std::string write(const store::ResultSet& result, Format format);  // of `syslab query`

// One sentence a row, "not measured" with the command where there is no row, as Markdown.
std::string write_sentences(const Table& table);

// Columns aligned with spaces, for a terminal; `cells` are rows as wide as `header`.
std::string write_aligned(const std::vector<Column>& header, const std::vector<std::vector<std::string>>& cells);
// Of `syslab query`: columns under the names that the SELECT gives them, numbers to six digits, "-" where there is
// none.
std::string write_aligned(const store::ResultSet& result);

}  // namespace syslab::report
