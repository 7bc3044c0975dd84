// How one value of a table reads.
//
// Formats of a column:
//   d            an integer                        s       a text
//   .3g          three significant digits          code    a text as code
//   .2f .1e      fixed, scientific                 strong  a text that stands out: what was asked for
//   flag         yes or no
//   .4b          significant digits and a unit of bytes that fits, no larger than the column's: "3.015 MiB"
//   ci(low, high)  value and interval, digits from the interval's width; low and high are columns of the result
//   ratio(low, high)  of two measured times, in a sentence: as ci, "1.87 (no interval)" without bounds,
//                and where 1 is within them "1.02 (0.80 … 1.31, no measurable difference)"
//   status       "OOM (needs …)", "wrong: …"            outcome of a law: passed, falsified, not run
//   uid          enough of an identity to find it again
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/status.hpp"
#include "report/table.hpp"

namespace syslab::report {

// "OOM" for "oom", "wrong" for "check_failed", …: words that a reader of a table knows.
std::string status_word(std::string_view status);

// Enough of a UUIDv7 to find it again: eight digits of its random part, which does not repeat as its time does.
std::string short_uid(const std::string& uid);

// `digits` significant digits, without an exponent where that is readable: "0.0123", "1230", "1.23e-07".
std::string with_digits(double value, int digits);
// "1.2340 ± 0.0050": two digits of uncertainty, the value to the same place; where the sides of the interval differ by
// more than a tenth of the longer, "1.2340 (1.2310 … 1.2390)", and where that is more than half the value, too, each
// end with three digits: "0.0634 (0.0610 … 18.0)".
std::string with_interval(double value, double low, double high);

// A bar for each of the values, from the smallest to the largest. What moves by less than a percent is drawn as level:
// a line over its full height would shout of noise. Error(internal) of no values.
std::string sparkline(const std::vector<double>& values);

// Index of a column of the result.
std::optional<std::size_t> find_column(const store::ResultSet& result, std::string_view name);
// The cell of that name in a row; a null cell if there is none.
const store::Cell& cell_of(const store::ResultSet& result, std::size_t row, std::string_view name);
// How what a row shows ended, by its column `status`; none where it has none. A word of the query's own is an error.
std::optional<Status> status_of(const Table& table, std::size_t row);

// The columns of the result that hold the ends of a column's interval, low first, by "ci(low, high)" or "ratio(low,
// high)"; empty of other formats.
std::vector<std::string> ends_of_interval(const Column& column);

// The text of a value as it is, at full precision; empty for null.
std::string plain(const store::Cell& cell);
// The text of a column in a row by the column's format; never empty: a missing value reads as "not measured", or, in
// a row that did not end well, as its status once ("OOM") and as "–" after that. Not escaped.
std::string formatted(const Table& table, std::size_t row, const Column& column);

// True if a column holds a time or what is made of times, by its unit: those are what a smoke run does not measure.
bool holds_times(const TableSource& source);

// The columns to show: all except those marked '?' with only one distinct value, or none. Those of bytes (format g)
// that are all below 1 of the unit which they share are in a smaller one; a single value far below bears its own.
std::vector<Column> shown_columns(const Table& table);
// The others that hold a value: what stands beneath the table instead (grid.hpp, foot_of).
std::vector<Column> unvaried_columns(const Table& table);

}  // namespace syslab::report
