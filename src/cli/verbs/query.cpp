#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

#include "cli/output_file.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/process/watchdog.hpp"
#include "session/stored_case.hpp"

namespace syslab::cli {
namespace {

constexpr std::uint64_t kLargestStatement = 1U << 20;

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
// a function over large values takes as long as it likes. A query only reads, and its result is written after it.
Watchdog watchdog_of(const Context& context) {
  constexpr std::chrono::milliseconds kGrace{2000};  // for SQLite to end it, so that it can clean up
  return {store::kLongestQuery + kGrace, [&context] {
            const Exit code = report_error(&context.console, context.global.json, ErrorKind::usage,
                                           store::query_takes_longer(store::kLongestQuery));
            std::fflush(stdout);
            ::_exit(static_cast<int>(code));
          }};
}

store::ResultSet result_of(const Context& context, const store::Store& store, const std::string& sql) {
  store.query("SELECT 1 FROM run LIMIT 1");  // waits for a writer, which may take longer than a query
  const Watchdog watchdog = watchdog_of(context);
  return store.query(sql);
}

}  // namespace

Exit execute(const Context& context, const QueryOptions& options) {
  const std::string sql = statement(options.sql);
  require_database(context);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  if (options.format == "raw") {
    write_output(context, options.output, only_value(result_of(context, store, sql)));
    return Exit::well;
  }
  const bool looked_at = options.format.empty() && options.output.empty() && !context.global.json;
  if (looked_at && context.console.output_is_terminal()) {
    context.console.print(report::write_aligned(result_of(context, store, sql)));
    return Exit::well;
  }
  write_output(context, options.output,
               report::write(result_of(context, store, sql), format_of(context, options.format, options.output)));
  return Exit::well;
}

}  // namespace syslab::cli
