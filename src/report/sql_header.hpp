// The header of comments that opens a .sql file of the report:
//
//   -- key: value
//   --   which may go on in lines like this one
//   SELECT …
//
// `like: naive_ddp_benchmarking/steps` takes what this header does not say itself, and the SELECT, from that
// experiment's file in the same folder: experiments that ask the same of their cases share a query. A header with a
// `caption` or an `about COLUMN` of its own takes no `about COLUMN` of that file.
//
// `with: memory_profiling/largest` begins this file's query with that file's WITH, up to its SELECT (a line of its own
// at the margin): a table and the sentence about it share what they draw from. Then follows a SELECT, or further names
// and one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syslab::report {

struct HeaderField {
  std::string key, value;
  std::size_t line = 0;  // of the file, from 1
};

// "about COLUMN[, COLUMN]"
bool is_about(const HeaderField& field);

struct SqlFile {
  std::vector<HeaderField> fields;  // in order
  std::string sql;                  // without empty lines at its end
  std::size_t lines = 0;
};

// `what` begins error messages: "figure time.sql". `folder`: "tables", "figures". Error(internal) naming the line.
SqlFile read_sql_file(const std::string& what, const std::string& folder, const std::string& text);

// The parts of a problem that "fills: b, c" names.
std::vector<std::string> parts_filled(const std::string& value);

}  // namespace syslab::report
