// Measures the cases of a pinned run again and says whether anything became slower or wrong.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/verbs/verbs.hpp"
#include "compare/gate_stored.hpp"
#include "compare/pinned_files.hpp"
#include "compare/sweep.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/files/machine_code.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "session/stored_case.hpp"
#include "session/stored_object.hpp"
#include "session/stored_run.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

bool wanted(const Context& context, const std::vector<std::string>& names, const std::string& experiment) {
  if (names.empty()) return true;
  const auto chosen = context.registry.select(names);
  return std::any_of(chosen.begin(), chosen.end(), [&](const auto* it) { return it->id == experiment; });
}

// The implementation as it is now: for --mine the file given, or the one at the same place, changed or not, since that
// is what the gate is about.
void add_case(const Context& context, const store::PlanRow& row, MineFiles& files, Pinned& pinned) {
  plan::PlannedCase planned = planned_case(context.registry, row);
  files.require_may_name_files(pinned.run.id, planned);
  if (row.implementation.is_mine) {
    const auto& mine = pinned.plan.mine;
    if (std::none_of(mine.begin(), mine.end(), [&](const auto& it) { return it.name == row.implementation.name; })) {
      pinned.plan.mine.push_back(files.find(pinned.run.id, row.implementation, ChangedFile::taken));
      pinned.files.push_back({pinned.plan.mine.back(), row.implementation.digest});
    }
  } else if (!planned.implementation.empty() &&
             planned.experiment->find_implementation(planned.implementation) == nullptr) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has no implementation {} any more", row.experiment, planned.implementation));
  }
  if (context.places != nullptr && planned.world_size > context.places->ranks()) {
    throw Error(ErrorKind::usage,
                fmt::format("{}, and this launch has {}", Shortage{Shortage::Of::ranks, planned.world_size}.text(),
                            context.places->ranks()));
  }
  planned.index = static_cast<int>(pinned.plan.cases.size());
  pinned.plan.cases.push_back(std::move(planned));
}

// Cases of a run that syslab called not judged, by their number in its plan: what was said.
std::map<int, std::string> not_judged(const store::Store& store, store::RowId run) {
  const store::ResultSet found = store.query(
      "SELECT plan_seq, message FROM v_attempt WHERE run_id = ?1 AND status = 'unsupported' AND EXISTS"
      " (SELECT 1 FROM json_each(facts, '$.warnings') w WHERE w.type = 'object' AND w.value ->> '$.code' = ?2) ORDER "
      "BY attempt_no",
      {store::integer_cell(run),
       store::text_cell(std::string(stats::to_string(stats::WarningCode::elements_unjudged)))});
  std::map<int, std::string> said;
  for (const auto& row : found.rows) said[static_cast<int>(row[0].integer)] = first_line(row[1].text);
  return said;
}

// The line for a planned case without a time. Nothing for a case that needs none: skipped, unsupported, or out of
// memory where that is an answer.
std::optional<GatedLine> not_gated(const Context& context, const store::PlanState& state) {
  const store::PlanRow& row = state.plan;
  if (state.last_status == Status::ok || !row.skip_reason.empty()) return std::nullopt;
  const auto known = std::ranges::find(context.registry.experiments(), row.experiment, &registry::Experiment::id);
  const bool oom_is_an_answer = known != context.registry.experiments().end() && known->oom_is_an_answer;
  if (state.last_status && exit_of(*state.last_status, oom_is_an_answer) == Exit::well) return std::nullopt;
  const std::string why = state.last_status
                              ? fmt::format("it ended as {} in the pinned run", to_string(*state.last_status))
                              : "it did not end in the pinned run";
  return GatedLine{case_label(context.registry, row.experiment, row.implementation.name, row.params, row.world_size),
                   verdict::incomparable(why),
                   {}};
}

Pinned pinned_cases(const Context& context, const store::Store& store, const GateOptions& options) {
  const store::OneState one_state(store);  // what is pinned is what is proved to be this user's own
  Pinned pinned{find_run_or_pin(store, options.against), {}, {}, {}, {}, {}};
  pinned.arrival = self_reported(store, pinned.run.uid);
  const std::map<int, std::string> unjudged = not_judged(store, pinned.run.id);
  std::set<std::tuple<std::string, std::string, int>> seen;
  bool any = false;
  MineFiles files(store, options.mine,
                  fmt::format("syslab gate --against {}{}", options.against, db_flag(context.global)));
  const std::vector<store::PlanState> states = store.plan_state(pinned.run.id);
  files.require_known(mine_names(states));
  for (const store::PlanState& state : states) {
    const store::PlanRow& row = state.plan;
    const auto why = state.last_status == Status::unsupported ? unjudged.find(row.seq) : unjudged.end();
    if (row.task != Task::measure) continue;
    if (state.last_status != Status::ok && why == unjudged.end()) {
      std::optional<GatedLine> line = not_gated(context, state);
      if (line && wanted(context, options.names, row.experiment)) pinned.not_gated.push_back(std::move(*line));
      continue;
    }
    any = true;
    if (!wanted(context, options.names, row.experiment)) continue;
    if (!seen.insert({row.case_uid, row.implementation.name, row.world_size}).second) continue;
    if (why != unjudged.end()) {
      pinned.missing.push_back(
          fmt::format("{}: the pinned run has no time of it: {}",
                      case_label(context.registry, row.experiment, row.implementation.name, row.params, row.world_size),
                      why->second));
      continue;
    }
    try {
      add_case(context, row, files, pinned);
    } catch (const Error& error) {
      pinned.missing.push_back(
          case_label(context.registry, row.experiment, row.implementation.name, row.params, row.world_size) + ": " +
          error.what());
    }
  }
  pinned.plan.root_seed = parse_seed(pinned.run.root_seed);
  if (pinned.plan.cases.empty() && pinned.missing.empty()) {
    throw Error(
        ErrorKind::usage,
        any ? fmt::format("run {} measured none of the experiments named", pinned.run.uid)
            : fmt::format("run {} holds no measured case that ended well: nothing to gate against", pinned.run.uid));
  }
  return pinned;
}

plan::ComparisonPlan against_itself(const Pinned& pinned, const std::string& build) {
  plan::ComparisonPlan plan;
  plan.mine = pinned.plan.mine;
  plan.root_seed = pinned.plan.root_seed;
  plan.sides.a.build = build;
  for (const plan::PlannedCase& planned : pinned.plan.cases) {
    plan::ComparisonPoint point{planned.params, planned.implementation, planned, planned};
    point.a.index = static_cast<int>(2 * plan.points.size());
    point.b.index = point.a.index + 1;
    plan.points.push_back(std::move(point));
  }
  return plan;
}

// Measures both programs in turns; what is slower is measured once more.
std::vector<SweptComparison> gate_by_build(const Context& context, store::Store& store, const Pinned& pinned,
                                           const GateOptions& options, const ComparisonConditions& conditions,
                                           plan::ComparisonPlan& plan) {
  require_pinned_files(pinned.run.uid, pinned.files);  // before a revision is built
  std::set<std::string> experiments;
  for (const plan::PlannedCase& planned : pinned.plan.cases) experiments.insert(planned.experiment->id);
  const std::string program = program_of(context.console, *options.build);
  SideBuild old = ask_build(program, {experiments.begin(), experiments.end()});
  if (revision_of(old.facts) != revision_of(build_of_run(store, pinned.run.id))) {
    throw Error(
        ErrorKind::usage,
        fmt::format("'{}' is revision {}, but run {} was made by {}; name the program that made it", *options.build,
                    revision_of(old.facts), pinned.run.uid, revision_of(build_of_run(store, pinned.run.id))));
  }
  plan = against_itself(pinned, program);
  SideBuild now = this_build();
  now.code = machine_code_digest("/proc/self/exe", build_info().git_sha);
  ComparisonSession session(context, store, "gate", options.label, plan, conditions, std::move(old), std::move(now));
  std::vector<SweptComparison> sweep = measure_sweep(session, plan);
  settle_sweep(store, sweep);
  for (SweptComparison& first : sweep) {
    if (first.judgement.verdict != stats::Verdict::slower) continue;
    if (session.interrupted()) {
      first.judgement = verdict::not_confirmed(first.judgement);
      first.measured.stop = "interrupted";
      continue;
    }
    context.console.note(fmt::format("{}: slower; measured once more", session.title(*first.measured.point)));
    // As thoroughly as the first time, whatever is left of the budget: a quick look would confirm nothing.
    SweptComparison again;
    again.measured.point = first.measured.point;
    session.launch(again.measured, first.measured.launches(), first.measured.launches());
    if (!again.measured.failed) again.measured.stop = "launches";
    refuse_unresolved(again.measured);
    again.judgement = session.judged(again.measured);
    again.uid = session.keep(again.measured, again.judgement, first.uid);
    first.judgement = verdict::confirmed(first.judgement, again.judgement);
    first.uid = again.uid;
    first.measured = std::move(again.measured);
  }
  if (const std::string told = what_build_compares(pinned.files); !told.empty() && !context.console.json()) {
    context.console.print(told + "\n");
  }
  print_sweep(context, session, sweep);
  return sweep;
}

Exit gate_in_turns(const Context& context, store::Store& store, const Pinned& pinned, const GateOptions& options,
                   const ComparisonConditions& conditions, std::vector<GatedLine>& lines) {
  plan::ComparisonPlan plan;
  const std::vector<SweptComparison> sweep = gate_by_build(context, store, pinned, options, conditions, plan);
  for (const SweptComparison& it : sweep) {
    const plan::PlannedCase& planned = it.measured.point->b;
    lines.push_back({label_of(planned), it.judgement, annotated_file(pinned.plan.mine, planned.implementation)});
  }
  return exit_of(sweep, plan.points.size() - sweep.size());
}

void tell_missing(const Context& context, const Pinned& pinned) {
  for (const GatedLine& line : pinned.not_gated) {
    if (context.console.json()) {
      context.console.print_line({{"type", "not_gated"}, {"case", line.title}, {"reason", line.judgement.reason.text}});
    } else {
      context.console.print(fmt::format("not gated: {}: {}\n", line.title, line.judgement.reason.text));
    }
  }
  for (const std::string& line : pinned.missing) {
    if (context.console.json()) {
      context.console.print_line({{"type", "missing"}, {"case", line}});
    } else {
      context.console.print("missing: " + line + "\n");
    }
  }
}

}  // namespace

Exit execute(const Context& context, const GateOptions& options) {
  require_database(context);
  if (options.github) require_github();
  if (options.budget && !options.build) {
    throw Error(ErrorKind::usage,
                "--budget is for --build, which decides by itself how many launches are enough; against stored values "
                "--launches says how many (default 5)");
  }
  store::Store store = open_for_writing(context);
  const Pinned pinned = pinned_cases(context, store, options);
  ComparisonConditions conditions;
  const StoredObject protocol("run.protocol", pinned.run.protocol_json);
  conditions.protocol =
      (protocol.contains("of") ? protocol.object("of") : protocol).value("name", std::string("kernel"));
  conditions.data = protocol.value("data", conditions.data);
  conditions.launches = options.launches;
  if (options.delta) conditions.delta = percent_option("--delta", *options.delta);
  if (options.budget) conditions.budget = duration_option("--budget", *options.budget);
  conditions.timeout = duration_option("--timeout", options.timeout);

  Exit exit = pinned.missing.empty() ? Exit::well : Exit::incomplete;
  if (!pinned.not_gated.empty()) exit = worse(exit, Exit::unclear);
  tell_missing(context, pinned);
  std::vector<GatedLine> lines = pinned.not_gated;
  if (!pinned.plan.cases.empty()) {
    if (!pinned.plan.mine.empty()) tell_missing_walls(context.console);
    exit = worse(exit, options.build ? gate_in_turns(context, store, pinned, options, conditions, lines)
                                     : gate_by_stored(context, store, pinned, options, conditions, lines));
  }
  if (options.github) {
    // In turns, no time of the pinned run is compared.
    const std::string about_pin = options.build ? "" : self_reported_sentence(pinned.arrival);
    tell_github(context, options.against, lines, pinned.missing, about_pin);
  }
  return exit;
}

}  // namespace syslab::cli
