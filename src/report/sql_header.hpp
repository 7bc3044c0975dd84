// The header of comments that opens a .sql file of the report:
//
//   -- key: value
//   --   which may go on in lines like this one
//   SELECT …
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syslab::report {

struct HeaderField {
  std::string key, value;
  std::size_t line = 0;  // of the file, from 1
};

struct SqlFile {
  std::vector<HeaderField> fields;  // in order
  std::string sql;                  // without empty lines at its end
  std::size_t lines = 0;
};

// `what` begins error messages: "figure time.sql". Error(internal) naming the line.
SqlFile read_sql_file(const std::string& what, const std::string& text);
SqlFile read_sql_header(const std::string& what, const std::string& text);  // there may be no SELECT

// The parts of a problem that "fills: b, c" names.
std::vector<std::string> parts_filled(const std::string& value);

}  // namespace syslab::report
