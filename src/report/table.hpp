// A table of the report: one .sql file with a header of comments, its result, and the ways it is written.
//
//   -- title: FlashAttention-2 forward on {device}
//   -- caption: Median of {n} samples; cold.
//   -- experiment: flash_forward
//   -- columns: seq|1|d|right; time|ms|.3~|right; …       name|unit|format|align, in the order of the SELECT
//   -- sentence: {best_impl} is {speedup} times as fast as {other} at seq {seq}.
//   SELECT …
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace syslab::report {

struct Column {
  std::string name, unit, format, align;
};

struct TableSource {
  std::string id;  // file name without .sql: "flash_forward"
  std::string experiment, title, caption;
  std::vector<Column> columns;
  std::vector<std::string> notes;
  std::string sql;
};

// Error(internal) naming the line when the header is malformed or incomplete.
TableSource parse_table(const std::string& id, const std::string& text);

struct Table {
  TableSource source;
  store::ResultSet result;
  std::string footnote;  // device, protocol, revision, run, and the command that remakes the table
};

Table fill(const TableSource& source, const store::Store& store);

enum class Format { markdown, csv, json };
std::string write(const Table& table, Format format);
std::string write(const store::ResultSet& result, Format format);  // of `syslab query`

}  // namespace syslab::report
