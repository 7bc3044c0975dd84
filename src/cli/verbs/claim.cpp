#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "claim/alteration.hpp"
#include "claim/programs.hpp"
#include "cli/claim_run.hpp"
#include "cli/output_file.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/units.hpp"
#include "session/selection.hpp"
#include "words/speed_words.hpp"

namespace syslab::cli {
namespace {

// Of a claim that was not shown: what could be claimed.
std::string advice(const claim::Statement& statement, const verdict::SpeedFinding& finding) {
  if (finding.confirmable <= 0 || (statement.factor >= 1 && finding.confirmable < 1)) return {};
  const char* const quantifier =
      statement.quantifier == verdict::Quantifier::geometric_mean ? " in geometric mean" : "";
  return fmt::format("; these measurements would show '{} >= {} x {}{}'", statement.faster,
                     words::claimable_text(finding.confirmable), statement.slower, quantifier);
}

// Before anything is measured: that what is known of the file by then can be read again. Error(usage) with what cannot.
void require_readable(claim::File file) {
  file.cases.push_back({"a case", "experiment", "1", "{}", 0, {}, {}, {}});
  file.environment_json = file.build_json = "{}";
  try {
    static_cast<void>(claim::from_text("this", claim::to_text(file)));
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("no claim can be written of this: {}", error.what()));
  }
}

// What `verify` would reject is not written.
std::string text_for_others(const std::string& name, const claim::File& file) {
  std::string text = claim::to_text(file);
  const claim::File read = claim::from_text(name, text);
  if (read.altered.empty()) return text;
  throw Error(ErrorKind::internal, fmt::format("no claim was written, since verify would reject it: {}",
                                               claim::to_string(read.altered.front())));
}

// A claim is about the inputs of its cases; elsewhere the code may be wrong.
void warn_of_falsified(const Console& console, const std::string& name, const std::vector<claim::Law>& laws) {
  for (const claim::Law& law : laws) {
    if (law.outcome != Outcome::falsified) continue;
    console.warn(fmt::format("{} fails {} ({}), as the claim says", name, law.name, to_string(law.contract)));
  }
}

}  // namespace

Exit execute(const Context& context, const ClaimOptions& options) {
  claim::File file;
  file.statement = claim::parse_statement(options.statement);
  file.tolerance = options.tolerance ? percent_option("--tolerance", *options.tolerance, 100) : claim::kTolerance;
  file.question.experiments = options.selection.names;
  file.question.assignments = options.selection.assignments;
  file.question.devices = options.selection.devices;
  file.question.preset = options.selection.preset;
  file.question.seed = options.selection.seed;
  file.question.protocol = options.protocol.value_or("");
  file.question.data = options.data;
  file.question.reads = options.selection.reads;
  if (!options.selection.commands.empty()) claim::take_inputs_of_programs(file.question);
  const plan::ComparisonPlan plan = plan_of(context, file.statement, file.question, options.selection);
  file.faster = side_of(plan, 'B');
  file.slower = side_of(plan, 'A');
  file.digests = digests_of(plan);
  require_readable(file);
  require_writable(context, options.output);
  take_machine(file);
  // Who makes a claim has no tolerance.
  const ClaimRun run =
      measure(context, "claim", plan, file, 0,
              {options.launches, options.budget, options.timeout, options.memory_limit, options.label});
  const verdict::SpeedBorder border = claim::border_of(file.statement, 0);
  const verdict::SpeedFinding finding = verdict::judge(border, run.measured);
  const std::string reason = words::reason(finding, run.measured, border);
  const bool shown = finding.verdict == verdict::SpeedVerdict::confirmed;
  for (const auto& [name, laws] : run.laws) warn_of_falsified(context.console, name, laws);
  if (shown) {
    for (claim::Side* side : {&file.faster, &file.slower}) {
      if (const auto found = run.laws.find(side->name); found != run.laws.end()) side->laws = found->second;
    }
    file.cases = run.cases;
    file.made_at = utc_now();
    write_output(context, options.output, text_for_others(options.output, file));
  }
  if (context.console.json()) {
    Json json = words::to_json(finding, run.measured, reason);
    json["claim"] = claim::to_string(file.statement);
    json["run"] = run.run_uid;
    json["reason_code"] = stats::to_string(run.code);
    json["warnings"] = Json::array();
    for (const claim::Case& one : run.cases) {
      json["warnings"].push_back({{"case", one.title}, {"warnings", stats::to_json(one.warnings)}});
    }
    json["file"] = shown ? Json(options.output) : Json();
    if (!plan.mine.empty()) add_missing_walls(json);
    context.console.print_document(json);
    return worse(exit_of(finding.verdict), run.exit);
  }
  context.console.print(case_table(context.console, run.measured, finding, border.log(), nullptr));
  context.console.print(warnings_of(run.cases));
  context.console.print(fmt::format("{}: {}.\n", verdict::to_string(finding.verdict), reason));
  context.console.print(other_failures(run.measured, finding));
  context.console.print(shown ? fmt::format("wrote {}; `syslab report {}` shows it\n", options.output, options.output)
                              : fmt::format("no claim was written{}\n", advice(file.statement, finding)));
  if (!run.what_would_do.empty()) context.console.print(run.what_would_do + "\n");
  return worse(exit_of(finding.verdict), run.exit);
}

}  // namespace syslab::cli
