#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/selection.hpp"
#include "cli/verbs.hpp"

namespace syslab::cli {

Exit execute(const Context& context, const PlanOptions& options) {
  const plan::Plan plan = plan::make_plan(context.registry, to_selection(options.selection));
  const Console& console = context.console;
  std::int64_t skipped = 0;
  double most_bytes = 0;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (planned.skip_reason) {
      ++skipped;
    } else {
      most_bytes = std::max(most_bytes, planned.predicted_bytes);
    }
  }
  if (console.json()) {
    Json cases = Json::array();
    for (const plan::PlannedCase& planned : plan.cases) cases.push_back(plan::to_json(planned));
    console.print_document({{"root_seed", std::to_string(plan.root_seed)},
                            {"cases", cases},
                            {"to_run", static_cast<std::int64_t>(plan.cases.size()) - skipped},
                            {"skipped", skipped},
                            {"most_bytes", most_bytes}});
    return Exit::well;
  }
  std::string text;
  for (const plan::PlannedCase& planned : plan.cases) {
    text += fmt::format("{:>4}  {}", planned.index + 1, label_of(planned));
    if (planned.predicted_bytes > 0) {
      text += "  " + console.styled(format_bytes(static_cast<std::uint64_t>(planned.predicted_bytes)), Style::dim);
    }
    if (planned.skip_reason) text += "  " + console.styled("skipped: " + *planned.skip_reason, Style::dim);
    text += "\n";
  }
  text += fmt::format("{} to run, {} skipped", counted(static_cast<std::int64_t>(plan.cases.size()) - skipped, "case"),
                      skipped);
  if (most_bytes > 0) text += ", at most " + format_bytes(static_cast<std::uint64_t>(most_bytes)) + " at a time";
  console.print(text + "\n");
  return Exit::well;
}

}  // namespace syslab::cli
