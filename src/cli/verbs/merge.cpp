#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "runner/environment.hpp"
#include "session/session.hpp"
#include "store/damaged.hpp"

namespace syslab::cli {
namespace {

// What may be compared with what hangs on this key, so it must be that of the machine that the facts describe. A
// machine without a description is comparable with itself alone, and so with none that has one.
void require_true_keys(const store::Store& other, const std::string& file, const store::Store& ours) {
  std::set<std::string> described;
  for (const store::Store* const store : {&other, &ours}) {
    for (const auto& row : store->query("SELECT comparability_key FROM environment WHERE facts <> '{}'").rows) {
      described.insert(row[0].text);
    }
  }
  for (const auto& row : other.query("SELECT uid, comparability_key, facts FROM environment").rows) {
    const Json facts = json_or_discarded(row[2].text);
    const bool holds = facts.is_object() && (facts.empty() ? !described.contains(row[1].text)
                                                           : runner::comparability_key(facts) == row[1].text);
    if (holds) continue;
    throw Error(ErrorKind::store,
                fmt::format("cannot merge '{}': the kind of machine of its environment {} is not what its facts say: "
                            "found the comparability_key {}; nothing was merged",
                            file, row[0].text, printable(row[1].text)));
  }
}

}  // namespace

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
  for (const std::string& file : options.databases) {
    require_true_keys(store::Store::open(file, store::Mode::read_only), file, store);
  }
  Json merged = Json::array();
  for (const std::string& file : options.databases) {
    const store::MergeCounts counts = store.merge(file, {.trusted = options.trust});
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
