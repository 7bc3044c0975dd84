#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/text/text.hpp"
#include "runner/environment.hpp"
#include "session/session.hpp"
#include "store/damaged.hpp"

namespace syslab::cli {
Exit execute(const Context& context, const MergeOptions& options) {
  for (const std::string& file : options.databases) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) {
      throw Error(ErrorKind::usage, fmt::format("there is no database '{}'", file));
    }
    if (std::filesystem::equivalent(file, context.global.database, ignored)) {
      throw Error(ErrorKind::usage, fmt::format("'{}' is the database that the others are merged into", file));
    }
    try {  // all are looked at before anything is written
      store::Store::open(file, store::Mode::read_only);
    } catch (const store::DamagedDatabase&) {  // it names the file
      throw;
    } catch (const Error& error) {
      throw Error(ErrorKind::usage, fmt::format("cannot merge '{}': {}", file, error.what()));
    }
  }
  store::Store store = open_for_writing(context);
  Json merged = Json::array();
  for (const std::string& file : options.databases) {
    const store::MergeCounts counts =
        store.merge(file, {.trusted = options.trust, .key_of_machine = runner::comparability_key});
    if (context.console.json()) {
      merged.push_back({{"database", file},
                        {"runs", counts.runs},
                        {"attempts", counts.attempts},
                        {"already_there", counts.already_there},
                        {"left_out", counts.left_out}});
    } else {
      const std::string left_out =
          counts.left_out == 0 ? ""
                               : fmt::format(
                                     "; {} left out, of runs that were measured here, or names of runs; try: --trust, "
                                     "if you measured them",
                                     counted(counts.left_out, "row"));
      context.console.print(fmt::format("{}: {} and {} added, {} already there{}\n", file, counted(counts.runs, "run"),
                                        counted(counts.attempts, "attempt"), counts.already_there, left_out));
    }
  }
  if (context.console.json()) context.console.print_document({{"merged", merged}});
  return Exit::well;
}

}  // namespace syslab::cli
