#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/diagnosis.hpp"
#include "cli/verbs.hpp"
#include "runner/environment.hpp"

namespace syslab::cli {

// 3 when something does not work; doubts are told but are nobody's fault.
Exit execute(const Context& context, const DoctorOptions&) {
  const Json facts = runner::environment_facts();
  const std::vector<Finding> findings{look_at_database(context), look_at_file_system(context.global.database),
                                      look_at_worker(context),   look_at_openblas(),
                                      look_at_threads(facts),    look_at_load(facts),
                                      look_at_clock(facts),      look_at_python(),
                                      look_at_gpu(facts),        look_at_build()};
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
  text += fmt::format("{} bad, {} doubtful: this machine is {}\n", count(Level::bad), count(Level::doubtful),
                      count(Level::bad) > 0        ? "not fit to run"
                      : count(Level::doubtful) > 0 ? "fit to run; mend the doubts before you publish numbers"
                                                   : "fit to publish from");
  console.print(text);
  return exit;
}

}  // namespace syslab::cli
