#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/output_file.hpp"
#include "cli/stored_case.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"

namespace syslab::cli {
namespace {

// The argument itself, or the content of the .sql file that it names.
std::string statement(const std::string& argument) {
  if (!argument.ends_with(".sql") || argument.find(' ') != std::string::npos) return argument;
  std::ifstream file(argument);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(ErrorKind::usage, "cannot read '" + argument + "'");
  return text.str();
}

}  // namespace

Exit execute(const Context& context, const QueryOptions& options) {
  const std::string sql = statement(options.sql);
  require_database(context);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  write_output(context, options.output,
               report::write(store.query(sql), format_of(context, options.format, options.output)));
  return Exit::well;
}

}  // namespace syslab::cli
