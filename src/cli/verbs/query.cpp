#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "cli/output_file.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/process/watchdog.hpp"
#include "core/text/units.hpp"
#include "session/stored_case.hpp"

namespace syslab::cli {
namespace {

constexpr std::uint64_t kLargestStatement = 1U << 20;

// Formats make a result larger: LaTeX writes a backslash in 16 bytes, HTML a '<' in four, and each holds the whole two
// or three times. Measured on two idle cores for results of this size: LaTeX of '~' took 1.7 GB and 8 s, HTML of '"'
// 0.7 GB and 2 s, HTML of four million numbers 1.0 GB and 3 s.
constexpr std::size_t kMostBytes = std::size_t{32} << 20;
constexpr std::size_t kBytesOfAValue = 8;  // and those of its text

// How often a format writes what it writes. Raw results may be larger than those that a format writes.
enum class Repeats { raw, nothing, names_in_rows, widths_in_rows };

// About how many bytes a format adds to the values of each row: JSON repeats the names of columns, and a terminal pads
// each column but the last to its widest value.
std::size_t bytes_of_each_row(const store::ResultSet& result, Repeats repeats) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < result.columns.size(); ++i) {
    if (repeats == Repeats::names_in_rows) bytes += result.columns[i].size();
    if (repeats != Repeats::widths_in_rows || i + 1 == result.columns.size()) continue;
    std::size_t widest = result.columns[i].size();
    for (const auto& row : result.rows) widest = std::max(widest, row[i].text.size());
    bytes += widest;
  }
  return bytes;
}

void require_writable(const store::ResultSet& result, Repeats repeats) {
  if (repeats == Repeats::raw) return;
  std::size_t bytes = result.rows.size() * bytes_of_each_row(result, repeats);
  for (const auto& row : result.rows) {
    for (const store::Cell& cell : row) bytes += kBytesOfAValue + cell.text.size();
  }
  if (bytes <= kMostBytes) return;
  throw Error(ErrorKind::usage,
              fmt::format("query: this gives {}, more than {}; ask for fewer rows or columns{}", format_bytes(bytes),
                          format_bytes(kMostBytes),
                          repeats == Repeats::names_in_rows ? ", or give columns shorter names" : ""));
}

// The argument itself, or the content of the .sql file that it names.
std::string statement(const std::string& argument) {
  if (!argument.ends_with(".sql") || argument.find(' ') != std::string::npos) return argument;
  return read_user_file(argument, kLargestStatement);
}

// The only value of a result, without a table around it.
std::string only_value(const store::ResultSet& result) {
  if (result.rows.size() != 1 || result.columns.size() != 1) {
    throw Error(ErrorKind::usage,
                fmt::format("query --to raw wants a SELECT of one row and one column; this one gives {} × {}",
                            result.rows.size(), result.columns.size()));
  }
  const store::Cell& cell = result.rows.front().front();
  switch (cell.type) {
    case store::Cell::Type::null:
      throw Error(ErrorKind::usage, "query --to raw wants a value, and this SELECT gives NULL");
    case store::Cell::Type::integer:
      return std::to_string(cell.integer);
    case store::Cell::Type::real:
      return fmt::format("{}", cell.real);
    case store::Cell::Type::text:
      return cell.text;
  }
  return {};
}

// Ends the process if the query does not end by itself: SQLite interrupts it between two instructions, and one call of
// a function over large values takes as long as it likes. Nor does it end the writer of a format. A query only reads,
// and nothing of its result is printed before all of it is text.
Watchdog watchdog_of(const Context& context) {
  constexpr std::chrono::milliseconds kGrace{2000};  // for SQLite to end it, so that it can clean up
  return {store::kLongestQuery + kGrace, [&context] {
            const Exit code = report_error(&context.console, context.global.json, ErrorKind::usage,
                                           store::query_takes_longer(store::kLongestQuery));
            std::fflush(stdout);
            ::_exit(static_cast<int>(code));
          }};
}

// The result as `shown` writes it.
template <typename Shown>
std::string result_as(const Context& context, const std::string& sql, Repeats repeats, Shown shown) {
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  store.query("SELECT 1 FROM run LIMIT 1");  // waits for a writer, which may take longer than a query
  const Watchdog watchdog = watchdog_of(context);
  const store::ResultSet result = store.query(sql);
  require_writable(result, repeats);
  return shown(result);
}

}  // namespace

Exit execute(const Context& context, const QueryOptions& options) {
  const std::string sql = statement(options.sql);
  require_database(context);
  if (options.format == "raw") {
    write_output(context, options.output, result_as(context, sql, Repeats::raw, only_value));
    return Exit::well;
  }
  const bool looked_at = options.format.empty() && options.output.empty() && !context.global.json;
  if (looked_at && context.console.output_is_terminal()) {
    context.console.print(result_as(context, sql, Repeats::widths_in_rows,
                                    [](const store::ResultSet& result) { return report::write_aligned(result); }));
    return Exit::well;
  }
  const report::Format format = format_of(context, options.format, options.output);
  const Repeats repeats = format == report::Format::json ? Repeats::names_in_rows : Repeats::nothing;
  write_output(context, options.output, result_as(context, sql, repeats, [format](const store::ResultSet& result) {
                 return report::write(result, format);
               }));
  return Exit::well;
}

}  // namespace syslab::cli
