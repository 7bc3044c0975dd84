#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/claim_run.hpp"
#include "cli/output_file.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/json_text.hpp"
#include "core/units.hpp"
#include "runner/environment.hpp"
#include "session/selection.hpp"

namespace syslab::cli {
namespace {

constexpr double kTolerance = 0.01;  // what another machine of the same kind may differ by

// Of a claim that was not shown: what could be claimed.
std::string advice(const claim::Statement& statement, const claim::Finding& finding) {
  if (finding.confirmable <= 0 || (statement.factor >= 1 && finding.confirmable < 1)) return {};
  return fmt::format("; these measurements would show '{} >= {} x {}'", statement.faster,
                     claim::claimable_text(finding.confirmable), statement.slower);
}

}  // namespace

Exit execute(const Context& context, const ClaimOptions& options) {
  claim::File file;
  file.statement = claim::parse_statement(options.statement);
  file.tolerance = options.tolerance ? percent_option("--tolerance", *options.tolerance) : kTolerance;
  file.question.experiments = options.selection.names;
  file.question.assignments = options.selection.assignments;
  file.question.devices = options.selection.devices;
  file.question.preset = options.selection.preset;
  file.question.seed = options.selection.seed;
  file.question.protocol = options.protocol.value_or("");
  file.question.data = options.data;
  file.question.reads = options.selection.reads;
  const plan::ComparisonPlan plan = plan_of(context, file.statement, file.question, options.selection);
  require_writable(context, options.output);
  const Json environment = runner::environment_facts();
  // Who makes a claim has no tolerance.
  const ClaimRun run =
      measure(context, "claim", plan, file, 0,
              {options.launches, options.budget, options.timeout, options.memory_limit, options.label});
  const claim::Finding finding = claim::judge(file.statement, run.measured, 0);
  const bool shown = finding.verdict == claim::Verdict::confirmed;
  if (shown) {
    file.faster = side_of(plan, 'B');
    file.slower = side_of(plan, 'A');
    for (claim::Side* side : {&file.faster, &file.slower}) {
      if (const auto found = run.laws.find(side->name); found != run.laws.end()) side->laws = found->second;
    }
    file.digests = digests_of(plan);
    file.cases = run.cases;
    file.made_at = utc_now();
    file.machine_kind = runner::comparability_key(environment);
    file.environment_json = json_text(runner::facts_for_strangers(environment));
    file.build_json = json_text(to_json(build_info()));
    write_output(context, options.output, claim::to_text(file));
  }
  if (context.console.json()) {
    Json json = to_json(finding, run.measured);
    json["claim"] = claim::to_string(file.statement);
    json["run"] = run.run_uid;
    json["file"] = shown ? Json(options.output) : Json();
    context.console.print_document(json);
    return worse(exit_of(finding.verdict), run.exit);
  }
  context.console.print(case_table(context.console, run.measured, finding, nullptr));
  context.console.print(fmt::format("{}: {}.\n", claim::to_string(finding.verdict), finding.reason));
  context.console.print(other_failures(run.measured, finding));
  context.console.print(shown ? fmt::format("wrote {}; `syslab report {}` shows it\n", options.output, options.output)
                              : fmt::format("no claim was written{}\n", advice(file.statement, finding)));
  if (!run.what_would_do.empty()) context.console.print(run.what_would_do + "\n");
  return worse(exit_of(finding.verdict), run.exit);
}

}  // namespace syslab::cli
