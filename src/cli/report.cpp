#include <fmt/format.h>

#include <map>
#include <string>

#include "cli/output_file.hpp"
#include "cli/verbs.hpp"
#include "report/leaderboard.hpp"
#include "report/report.hpp"
#include "session/stored_case.hpp"

namespace syslab::cli {

Exit execute(const Context& context, const ReportOptions& options) {
  report::ReportOptions wanted;
  if (!options.handout.empty()) wanted.handout = options.handout;
  wanted.names_others = options.handout.empty();
  wanted.format = format_of(context, options.format, options.output);
  wanted.answers = options.answers;
  wanted.figures = options.figures;
  wanted.files = !options.output.empty();
  if (!options.experiments.empty()) {
    for (const registry::Experiment* experiment : context.registry.select(options.experiments)) {
      wanted.experiments.push_back(experiment->id);
    }
  }
  require_database(context);
  store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  std::map<std::string, std::string> versions;
  for (const registry::Experiment& one : context.registry.experiments()) versions[one.id] = one.version;
  store.hold_still(versions);
  if (options.leaderboard) {
    write_output(context, options.output, report::render_leaderboard(store, wanted.experiments, wanted.format));
  } else {
    write_output(context, options.output, report::render(context.registry, store, wanted));
  }
  if (!options.output.empty()) context.console.note("wrote " + options.output);
  return Exit::well;
}

}  // namespace syslab::cli
