#include "cli/claim_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "claim/derived.hpp"
#include "claim/message.hpp"
#include "claim/quoted.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/text/command_text.hpp"
#include "core/text/format_factor.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "measure/protocol.hpp"
#include "report/table.hpp"
#include "runner/environment.hpp"
#include "runner/known_facts.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "stats/summary.hpp"
#include "store/cells.hpp"
#include "words/comparison_words.hpp"
#include "words/speed_words.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

constexpr const char* kClaimBudget = "2m";
constexpr std::size_t kShortReason = 40;  // bytes of why there is no time that a table has room for

std::string side_word(char side, const std::string& words) {
  return fmt::format("{}:{}{}", side, words.find('=') == std::string::npos ? "impl=" : "", words);
}

claim::Case planned_case(const plan::ComparisonPoint& point) {
  claim::Case one;
  one.experiment = point.a.experiment->id;
  one.version = point.a.experiment->version;
  one.params = json_text(point.shared.to_json());
  one.ranks = point.a.world_size == point.b.world_size ? point.a.world_size : 1;
  return one;
}

claim::Case case_of(const ComparisonSession& session, const SweptComparison& swept) {
  const plan::ComparisonPoint& point = *swept.measured.point;
  claim::Case one = planned_case(point);
  one.title = session.title(point);
  // A launch counts only if both sides were compared with the oracle and right.
  one.checked = swept.measured.launches();
  one.warnings = swept.judgement.warnings;
  for (stats::TimingWarning& warning : one.warnings) warning.about = one_line(warning.about);  // a file's name, say
  one.slower_code = swept.measured.kernel_code[0];
  one.faster_code = swept.measured.kernel_code[1];
  const auto& [slower, faster] = swept.measured.clock_mhz;
  if (!slower.empty()) one.slower_mhz = stats::summarize(slower).median;
  if (!faster.empty()) one.faster_mhz = stats::summarize(faster).median;
  for (const runner::PairedBlock& block : swept.measured.blocks) {
    one.blocks.push_back(
        {block.launch, block.block, block.order, {block.seconds.begin(), block.seconds.end()}, block.log_ratio});
  }
  return one;
}

bool is_short_of_time(const SweptComparison& swept) {
  return !swept.measured.failed && swept.measured.stop == "budget" &&
         swept.measured.launches() < verdict::kFewestLaunches;
}

// Axes of a claim's cases are words of its file.
std::string shown_title(const std::string& title, const Params& params) {
  return claim::shown_title(title, json_text(params.to_json()));
}

std::string shown_title_of(const ComparisonSession& session, const plan::ComparisonPoint& point) {
  return shown_title(session.title(point), point.shared);
}

verdict::MeasuredSpeed measured_of(const ComparisonSession& session, const SweptComparison& swept,
                                   const plan::Sides& sides, const claim::File& file) {
  verdict::MeasuredSpeed one;
  one.title = shown_title_of(session, *swept.measured.point);
  one.blocks = for_stats(swept.measured.blocks);
  if (swept.measured.failed) {
    one.failed = claim::shown_message(file, words::reason(swept.judgement, sides.a.label(), sides.b.label()));
    one.faster_wrong = swept.judgement.failed_b == Status::check_failed;
  } else if (is_short_of_time(swept)) {
    one.failed = words::reason(swept.judgement);
  }
  return one;
}

// Of the cases that are unclear, or of their mean, the one that takes most launches says how many it takes of all.
std::string advice_for(const std::vector<SweptComparison>& sweep, const verdict::SpeedFinding& finding, double border) {
  if (finding.verdict != verdict::SpeedVerdict::unclear || !finding.mean) return {};
  std::vector<verdict::Speed> unclear;
  for (const std::optional<verdict::Speed>& speed : finding.cases) {
    if (speed && speed->verdict == verdict::SpeedVerdict::unclear) unclear.push_back(*speed);
  }
  if (finding.cause == verdict::SpeedCause::mean) unclear = {*finding.mean};
  double half_width = 0, beside = 0, seconds = 0;
  for (const verdict::Speed& speed : unclear) {
    const double half = (std::log(speed.high) - std::log(speed.low)) / 2;
    const double apart = std::abs(std::log(speed.factor) - border);
    if (half_width == 0 || half * beside > half_width * apart) half_width = half, beside = apart;
  }
  int launches = 0;
  for (const SweptComparison& swept : sweep) {
    launches = std::max(launches, swept.measured.launches());
    seconds += swept.measured.seconds_per_launch();
  }
  return unclear.empty()
             ? ""
             : what_would_do({.half_width = half_width, .beside = beside, .launches = launches, .seconds = seconds},
                             sweep.front().measured.crowd);
}

// Of log(faster / slower) in each case. A mean of several has its own, which no case has to leave: infinitely far.
double border_of(const claim::Statement& statement, double tolerance, std::size_t cases) {
  const bool each = cases == 1 || statement.quantifier == verdict::Quantifier::every_case;
  return each ? -claim::border_of(statement, tolerance).log() : -HUGE_VAL;
}

std::map<std::string, std::vector<claim::Law>> laws_of(const store::Store& store, const std::string& run_uid) {
  const store::ResultSet found = store.query(
      "SELECT i.name, k.name, k.contract, k.outcome, k.cases_run, max(k.uid) FROM plan_case p"
      " JOIN implementation i ON i.id = p.implementation_id JOIN case_def c ON c.id = p.case_id"
      " JOIN attempt a ON a.run_id = p.run_id AND a.plan_seq = p.seq"
      " JOIN check_result k ON k.attempt_id = a.id AND k.name = p.law"
      " WHERE p.task = 'law'"
      "   AND p.run_id NOT IN (SELECT o.id FROM run o JOIN arrival ar ON ar.run_uid = o.uid WHERE NOT ar.trusted)"
      "   AND (c.experiment, p.implementation_id) IN (SELECT d.experiment, q.implementation_id"
      " FROM run r JOIN plan_case q ON q.run_id = r.id JOIN case_def d ON d.id = q.case_id WHERE r.uid = ?1)"
      " GROUP BY c.experiment, i.name, k.name, k.contract ORDER BY 1, 2, 3",
      {store::text_cell(run_uid)});
  std::map<std::string, std::vector<claim::Law>> laws;
  for (const std::vector<store::Cell>& row : found.rows) {
    const auto contract = contract_of(row[2].text);
    const auto outcome = outcome_of(row[3].text);
    if (contract && outcome) laws[row[0].text].push_back({row[1].text, *contract, *outcome, row[4].integer});
  }
  return laws;
}

// Of a table's cell; what is longer stands below.
std::string in_short(const verdict::MeasuredSpeed& measured) {
  if (measured.failed.size() <= kShortReason) return measured.failed;
  return measured.faster_wrong ? "wrong" : "no time";
}

Exit exit_of_run(const SweptComparison& swept) {
  const bool oom_is_an_answer = swept.measured.point->a.experiment->oom_is_an_answer;
  const verdict::Judgement& it = swept.judgement;
  Exit exit = swept.measured.stop == "interrupted" ? Exit::incomplete : Exit::well;
  if (it.failed_a) exit = worse(exit, exit_of(*it.failed_a, oom_is_an_answer));
  if (it.failed_b && it.failed_b != Status::check_failed) {
    exit = worse(exit, exit_of(*it.failed_b, oom_is_an_answer));
  }
  return exit;
}

}  // namespace

plan::ComparisonPlan plan_of(const Context& context, const claim::Statement& statement, claim::Question& question,
                             const SelectionOptions& files) {
  SelectionOptions words = files;
  words.names = question.experiments;
  words.assignments = question.assignments;
  words.devices = question.devices;
  words.preset = question.preset;
  words.seed = question.seed;
  words.reads = question.reads;
  std::vector<std::string> side_words{side_word('A', statement.slower), side_word('B', statement.faster)};
  plan::Sides sides = plan::take_sides(side_words);
  for (const plan::SideSpec* side : {&sides.a, &sides.b}) {  // which would be measured by this program all the same
    if (side->build.empty()) continue;
    throw Error(ErrorKind::usage, fmt::format("a claim is about implementations and axes, and 'build={}' is another "
                                              "program; `syslab compare` compares programs",
                                              side->build));
  }
  worker::choose_python_interpreter(words.python);
  const plan::Selection selection = to_selection(context, words, sides);
  plan::ComparisonPlan plan = plan::make_comparison_plan(*selection.registry, selection, std::move(sides), false);
  check_mine(plan.mine);
  if (!plan.mine.empty()) warn_of_missing_walls(context.console);
  std::set<std::string> ids;
  std::vector<plan::PlannedCase> cases;
  for (const plan::ComparisonPoint& point : plan.points) {
    ids.insert(point.a.experiment->id);
    cases.push_back(point.a);
  }
  question.experiments = {ids.begin(), ids.end()};
  if (question.protocol.empty()) question.protocol = own_protocol(cases, selection.preset == "smoke");
  question.protocol = measure::find_protocol(question.protocol).name;
  return plan;
}

ClaimRun measure(const Context& context, const std::string& verb, const plan::ComparisonPlan& plan,
                 const claim::File& file, double tolerance, const ClaimLimits& limits) {
  ComparisonConditions conditions;
  conditions.protocol = file.question.protocol;
  conditions.data = file.question.data;
  conditions.launches = limits.launches;
  if (limits.budget || !limits.launches) {
    conditions.budget = duration_option("--budget", limits.budget.value_or(kClaimBudget));
    conditions.keeps_budget = limits.budget.has_value();
  }
  conditions.timeout = duration_option("--timeout", limits.timeout);
  conditions.memory_limit_bytes = bytes_option("--memory-limit", limits.memory_limit);
  conditions.border = border_of(file.statement, tolerance, plan.points.size());
  conditions.shown_title = shown_title;
  conditions.shown_reason = [&file](const std::string& reason) { return claim::shown_message(file, reason); };
  store::Store store = open_for_writing(context);
  ComparisonSession session(context, store, verb, limits.label, plan, conditions, this_build(), this_build());
  std::vector<SweptComparison> sweep = measure_sweep(session, plan, {});
  settle_sweep(store, sweep);
  ClaimRun run;
  run.run_uid = session.run_uid();
  run.laws = laws_of(store, run.run_uid);
  for (const SweptComparison& swept : sweep) {
    run.measured.push_back(measured_of(session, swept, plan.sides, file));
    if (is_short_of_time(swept) && run.what_would_do.empty()) run.what_would_do = swept.judgement.note;
    run.cases.push_back(case_of(session, swept));
    if (swept.judgement.code != stats::TimingReason::none) run.code = swept.judgement.code;
    run.exit = worse(run.exit, exit_of_run(swept));
  }
  for (std::size_t i = sweep.size(); i < plan.points.size(); ++i) {
    run.measured.push_back({shown_title_of(session, plan.points[i]), {}, "not reached before the interruption", false});
    run.exit = worse(run.exit, Exit::incomplete);
  }
  if (run.what_would_do.empty()) {
    const verdict::SpeedBorder border = claim::border_of(file.statement, tolerance);
    run.what_would_do = advice_for(sweep, verdict::judge(border, run.measured), border.log());
  }
  return run;
}

std::string warnings_of(const std::vector<claim::Case>& cases) {
  std::string text;
  for (const stats::TimingWarning& one : claim::all_warnings(cases)) text += "warning: " + stats::sentence(one) + "\n";
  return text;
}

std::string other_failures(const std::vector<verdict::MeasuredSpeed>& measured, const verdict::SpeedFinding& finding) {
  std::string text;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const std::string& failed = measured[i].failed;
    if (failed.size() <= kShortReason || words::is_told_whole(finding, measured, failed)) continue;
    text += fmt::format("{}: {}\n", measured[i].title, failed);
  }
  return text;
}

claim::Side side_of(const plan::ComparisonPlan& plan, char side) {
  const plan::SideSpec& spec = side == 'A' ? plan.sides.a : plan.sides.b;
  const plan::PlannedCase& planned = side == 'A' ? plan.points.front().a : plan.points.front().b;
  claim::Side told;
  told.label = spec.label();
  told.name = planned.implementation;
  const auto mine = std::ranges::find(plan.mine, planned.implementation, &Submitted::name);
  told.is_mine = mine != plan.mine.end();
  if (told.is_mine && mine->is_command()) told.command = parse_command_place(mine->path())->command;
  told.digest = told.is_mine ? mine->digest : claim::revision_of(json_text(to_json(build_info())));
  return told;
}

std::vector<claim::Case> cases_of(const plan::ComparisonPlan& plan) {
  std::vector<claim::Case> cases;
  for (const plan::ComparisonPoint& point : plan.points) cases.push_back(planned_case(point));
  return cases;
}

void take_machine(claim::File& file) {
  const Json facts = runner::printable_facts(runner::facts_for_strangers(runner::environment_facts()));
  file.machine_kind = runner::comparability_key(facts);
  file.environment_json = json_text(facts);
  file.build_json = json_text(to_json(build_info()));
}

std::map<std::string, std::string> digests_of(const plan::ComparisonPlan& plan) {
  std::map<std::string, std::string> digests;
  const auto function = std::ranges::find_if(plan.mine, &Submitted::is_function);
  if (function == plan.mine.end()) return digests;
  digests["reference"] = sha256_hex_of_file(file_of(function->comparison()->reference));
  digests["inputs"] = sha256_hex_of_file(file_of(function->comparison()->inputs));
  return digests;
}

Exit exit_of(verdict::SpeedVerdict verdict) {
  if (verdict == verdict::SpeedVerdict::unclear) return Exit::unclear;
  return verdict == verdict::SpeedVerdict::confirmed ? Exit::well : Exit::slower;
}

std::string case_table(const Console& console, const std::vector<verdict::MeasuredSpeed>& measured,
                       const verdict::SpeedFinding& finding, double log_border, const verdict::SpeedFinding* claimed) {
  std::vector<report::Column> columns{{"case", "1", "s", "left"}};
  if (claimed != nullptr) columns.push_back({"claim's", "1", "s", "right"});
  for (const char* name : {"times as fast", "95 %"}) columns.push_back({name, "1", "s", "right"});
  columns.push_back({"", "1", "s", "left"});
  const auto factor = [log_border](const std::optional<verdict::Speed>& speed) {
    return speed ? factor_text(speed->factor, std::exp(log_border)) : "-";
  };
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    const std::optional<verdict::Speed>& speed = finding.cases[i];
    row.push_back(measured[i].title);
    if (claimed != nullptr) row.push_back(factor(claimed->cases[i]));
    row.push_back(factor(speed));
    row.push_back(speed ? words::interval_text(*speed, log_border) : "-");
    if (speed && finding.cause == verdict::SpeedCause::mean) {  // what is judged is the mean, not this case
      row.emplace_back();
      continue;
    }
    const bool good = speed && speed->verdict == verdict::SpeedVerdict::confirmed;
    row.push_back(console.styled(speed ? verdict::to_string(speed->verdict) : in_short(measured[i]),
                                 good ? Style::good : Style::bad));
  }
  return report::write_aligned(columns, rows);
}

}  // namespace syslab::cli
