#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/diagnosis.hpp"
#include "cli/publishable.hpp"
#include "cli/verbs/selftest.hpp"
#include "cli/verbs/verbs.hpp"
#include "compare/noise.hpp"
#include "core/error.hpp"
#include "runner/environment.hpp"
#include "session/stored_case.hpp"
#include "session/stored_run.hpp"

namespace syslab::cli {

namespace {

std::vector<Finding> of_this_machine(const Context& context) {
  const Json facts = runner::environment_facts();
  return {look_at_database(context),   look_at_file_system(context.global.database),
          look_at_worker(context),     look_at_openblas(),
          look_at_threads(facts),      look_at_load(facts),
          look_at_clock(facts),        look_at_python(),
          look_at_gpu(context, facts), look_at_build()};
}

std::vector<Finding> of_a_run(const Context& context, const std::string& name) {
  require_database(context);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  return judge_for_publication(store, find_run_or_pin(store, name));
}

}  // namespace

// 3 if something does not work, or a run is not fit; doubts are printed but do not change the exit code.
Exit execute(const Context& context, const DoctorOptions& options) {
  if (options.noise + options.selftest + options.run.has_value() > 1) {
    throw Error(ErrorKind::usage,
                "--noise measures this machine, --selftest runs everything on it, RUN judges a stored run; ask for one "
                "of them");
  }
  if (options.selftest) return run_selftest(context, options.output);
  if (options.noise) return measure_noise(context, options.budget);
  const std::vector<Finding> findings = options.run ? of_a_run(context, *options.run) : of_this_machine(context);
  const std::string what = options.run ? "this run" : "this machine";
  const auto count = [&](Level level) {
    return std::count_if(findings.begin(), findings.end(), [level](const Finding& it) { return it.level == level; });
  };
  const Exit exit = count(Level::bad) > 0 ? Exit::incomplete : Exit::well;
  const Console& console = context.console;
  if (console.json()) {
    Json all = Json::array();
    for (const Finding& finding : findings) {
      all.push_back({{"subject", finding.subject},
                     {"level", to_string(finding.level)},
                     {"found", finding.found},
                     {"remedy", finding.remedy}});
    }
    console.print_document({{"findings", all}, {"exit", static_cast<int>(exit)}});
    return exit;
  }
  std::string text;
  for (const Finding& finding : findings) {
    const Style style = finding.level == Level::fine ? Style::good : Style::bad;
    text += fmt::format("{} {:<12} {}\n", console.styled(fmt::format("{:<8}", to_string(finding.level)), style),
                        finding.subject, finding.found);
    if (!finding.remedy.empty()) text += fmt::format("{:22}{}\n", "", finding.remedy);
  }
  std::string fit = "fit to publish";
  if (count(Level::bad) > 0) {
    fit = options.run ? "not fit to publish" : "not fit to run";
  } else if (count(Level::doubtful) > 0) {
    fit = options.run ? "fit to publish with the doubts beside the numbers"
                      : "fit to run; mend the doubts before you publish numbers";
  } else if (!options.run) {
    fit = "fit to publish from";
  }
  text += fmt::format("{} bad, {} doubtful: {} is {}\n", count(Level::bad), count(Level::doubtful), what, fit);
  console.print(text);
  return exit;
}

}  // namespace syslab::cli
