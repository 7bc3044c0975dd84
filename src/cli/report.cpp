#include <fmt/format.h>

#include "cli/output_file.hpp"
#include "cli/stored_case.hpp"
#include "cli/verbs.hpp"
#include "report/leaderboard.hpp"
#include "report/report.hpp"

namespace syslab::cli {

Exit execute(const Context& context, const ReportOptions& options) {
  report::ReportOptions wanted;
  wanted.handout = options.handout;
  wanted.format = format_of(context, options.format);
  if (!options.experiments.empty()) {
    for (const registry::Experiment* experiment : context.registry.select(options.experiments)) {
      wanted.experiments.push_back(experiment->id);
    }
  }
  require_database(context);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  const std::string text = options.leaderboard ? report::render_leaderboard(store, wanted.experiments, wanted.format)
                                               : report::render(context.registry, store, wanted);
  write_output(context, options.output, text);
  if (!options.output.empty()) context.console.note("wrote " + options.output);
  return Exit::well;
}

}  // namespace syslab::cli
