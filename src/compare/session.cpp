#include "compare/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/files/machine_code.hpp"
#include "core/ids.hpp"
#include "core/text/format_seconds.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "measure/protocol.hpp"
#include "runner/budget.hpp"
#include "runner/environment.hpp"
#include "session/attempt_queue.hpp"
#include "session/command_selection.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

const Nanoseconds kBurst = runner::PairedSpec{}.burst;

std::size_t index_of(char side) { return side == 'A' ? 0 : 1; }

const plan::PlannedCase& case_of(const plan::ComparisonPoint& point, char side) {
  return side == 'A' ? point.a : point.b;
}

const plan::SideSpec& spec_of(const plan::ComparisonPlan& plan, char side) {
  return side == 'A' ? plan.sides.a : plan.sides.b;
}

// "is wrong: out[3] is 7", "ended as oom: needs 242 GiB".
verdict::AboutSide how_it_failed(char side, const runner::AttemptResult& result) {
  const std::string detail = result.detail.substr(0, result.detail.find('\n'));
  const std::string why = detail.empty() ? "" : ": " + detail;
  if (result.status == Status::check_failed) return {side, "is wrong" + why, detail};
  return {side, fmt::format("ended as {}{}", syslab::to_string(result.status), why), detail};
}

bool is_ok(const runner::AttemptResult& result) { return result.status == Status::ok; }

// If both ended badly, the one that ended by itself: the other was stopped because of it.
verdict::Judgement failure(const runner::PairedLaunch& launch) {
  const bool a_failed = !is_ok(launch.a) && launch.a.status != Status::aborted;
  const bool b_failed = !is_ok(launch.b) && launch.b.status != Status::aborted;
  std::vector<verdict::AboutSide> sides;
  if (a_failed) sides.push_back(how_it_failed('A', launch.a));
  if (b_failed) sides.push_back(how_it_failed('B', launch.b));
  verdict::Judgement judgement = sides.empty() ? verdict::incomparable({.cause = verdict::Cause::interrupted})
                                               : verdict::incomparable(std::move(sides));
  if (!a_failed && !b_failed) judgement.verdict = stats::Verdict::unclear;
  if (a_failed) judgement.failed_a = launch.a.status;
  if (b_failed) judgement.failed_b = launch.b.status;
  return judgement;
}

// The digest of what it ran on the GPU, in order; empty: it is not known (docs/history.md).
std::string kernel_code_of(const Json& facts) {
  if (!facts.is_object() || !facts.contains("code") || !facts["code"].is_object()) return {};
  return facts["code"].value("digest", std::string());
}

}  // namespace

Json to_json(const ComparisonConditions& conditions) {
  Json json{{"name", kPairedProtocol},  // its own protocol: bursts in turns are not the samples of `of`
            {"of", measure::to_json(measure::find_protocol(conditions.protocol))},
            {"data", conditions.data},
            {"blocks_per_launch", conditions.blocks_per_launch},
            {"fewest_blocks", conditions.fewest_blocks},
            {"measuring_ns", conditions.measuring.count()},
            {"burst_ns", conditions.burst.count()},
            {"budget_ns", conditions.budget.count()},
            {"timeout_ns", conditions.timeout.count()},
            {"memory_limit_bytes", conditions.memory_limit_bytes}};
  if (conditions.launches) {
    json["launches"] = *conditions.launches;
  } else {
    const stats::PairedStopRule rule;
    json["stop"] = {
        {"first_look", rule.first_look}, {"max_launches", rule.max_launches}, {"precision", rule.precision}};
  }
  if (conditions.delta) json["delta"] = *conditions.delta;
  return json;
}

bool is_unresolved(const MeasuredPoint& measured) {
  return std::ranges::any_of(measured.resolution, [](const PooledResolution& it) { return it.no_time().has_value(); });
}

void refuse_unresolved(MeasuredPoint& measured) {
  if (measured.failed) {  // one that was interrupted has blocks, which may be the lab's own times as well
    if (is_unresolved(measured)) measured.blocks.clear();
    return;
  }
  for (std::size_t one = 0; one < 2 && !measured.failed; ++one) {
    const std::optional<NoTime> why = measured.resolution[one].no_time();
    if (why) measured.failed = under_resolution(one == 0 ? 'A' : 'B', *why);
  }
  if (!measured.failed) return;
  measured.stop = "under_resolution";
  measured.blocks.clear();
}

double MeasuredPoint::seconds_per_launch() const {
  const double all = std::accumulate(launch_seconds.begin(), launch_seconds.end(), 0.0);
  return launch_seconds.empty() ? 0 : all / static_cast<double>(launch_seconds.size());
}

double MeasuredPoint::seconds_per_block() const {
  // Four bursts, each as long as asked for, or of one call if that is longer.
  double total = 0;
  for (const runner::PairedBlock& block : blocks) {
    for (const double seconds : block.seconds) total += std::max(seconds, Seconds(kBurst).count());
  }
  return blocks.empty() ? 0 : total / static_cast<double>(blocks.size());
}

ComparisonSession::ComparisonSession(const Context& context, store::Store& store, const std::string& verb,
                                     const std::string& label, const plan::ComparisonPlan& plan,
                                     ComparisonConditions conditions, SideBuild a, SideBuild b)
    : context_(context),
      store_(store),
      plan_(plan),
      conditions_(std::move(conditions)),
      builds_{std::move(a), std::move(b)},
      progress_(context.console, plan.points.size(), conditions_.budget) {
  const bool one_run = builds_[0].path == builds_[1].path;
  runs_[1] = begin_run(verb, label, 'B', one_run);
  runs_[0] = one_run ? runs_[1] : begin_run(verb, label, 'A', false);
  for (std::size_t i = 0; i < 2; ++i) run_uids_[i] = store_.run_uid(runs_[i]);
}

store::RowId ComparisonSession::begin_run(const std::string& verb, const std::string& label, char side, bool both) {
  plan::Plan planned;
  planned.mine = plan_.mine;
  planned.root_seed = plan_.root_seed;
  for (const plan::ComparisonPoint& point : plan_.points) {
    if (both || side == 'A') planned.cases.push_back(point.a);
    if (both || side == 'B') planned.cases.push_back(point.b);
  }
  const SideBuild& build = builds_[index_of(side)];
  std::vector<store::PlanRow> rows = plan_rows(planned);
  for (store::PlanRow& row : rows) {
    if (build.is_other() && !row.implementation.is_mine) row.implementation.digest = revision_of(build.facts);
  }
  const Json facts = runner::environment_facts();
  store::RunRow run;
  run.verb = verb;
  run.label = label;
  run.argv = {"syslab"};
  run.argv.insert(run.argv.end(), context_.arguments.begin(), context_.arguments.end());
  run.protocol_json = json_text(to_json(conditions_));
  run.root_seed = std::to_string(plan_.root_seed);
  run.environment_json = json_text(facts);
  run.comparability_key = runner::comparability_key(facts);
  run.build_json = build.facts;
  if (!build.is_other()) run.rung_facts = rung_facts(planned);  // another program's ladder is not known here
  return store_.begin_run(run, rows);
}

std::optional<verdict::Judgement> ComparisonSession::obstacle(const plan::ComparisonPoint& point) {
  const std::vector<std::string> differences = differing(builds_[0], point.a, builds_[1], point.b);
  if (!differences.empty()) return verdict::incomparable(fmt::format("{}", fmt::join(differences, "; ")));
  std::vector<verdict::AboutSide> sides;
  std::array<std::optional<Status>, 2> ended;
  for (const char side : {'A', 'B'}) {
    const plan::PlannedCase& planned = case_of(point, side);
    if (!planned.skip_reason) continue;
    const store::AttemptRow row = attempt_row({}, runner::not_tried(planned));
    store_.finish_attempt(runs_[index_of(side)], row);
    ended[index_of(side)] = row.status;
    sides.push_back({side, fmt::format("is {}: {}", syslab::to_string(row.status), row.detail)});
  }
  if (sides.empty()) return std::nullopt;
  verdict::Judgement judgement = verdict::incomparable(std::move(sides));
  judgement.failed_a = ended[0];
  judgement.failed_b = ended[1];
  return judgement;
}

std::string ComparisonSession::store_attempt(char side, runner::AttemptResult result) {
  store::AttemptRow row;
  row.uid = std::exchange(open_attempts_[index_of(side)], {});
  row.plan_seq = result.planned->index;
  row.status = result.status;
  row.detail = std::move(result.detail);
  row.facts_json = std::move(result.facts_json);
  row.started_at = std::move(result.started_at);
  row.ended_at = std::move(result.ended_at);
  row.records = std::move(result.records);
  return store_.finish_attempt(runs_[index_of(side)], row);
}

void ComparisonSession::launch(MeasuredPoint& measured, int launches, std::optional<int> expected,
                               std::optional<std::chrono::steady_clock::time_point> until) {
  for (int i = 0; i < launches && !measured.failed; ++i) {
    if (!launch_once(measured, expected, until)) break;
  }
}

bool ComparisonSession::launch_once(MeasuredPoint& measured, std::optional<int> expected,
                                    std::optional<std::chrono::steady_clock::time_point> until) {
  const plan::ComparisonPoint& point = *measured.point;
  runner::PairedOptions options;
  static_cast<runner::PairedSpec&>(options) = conditions_;
  options.seed = point.a.seed;
  options.places = context_.places;
  options.workers = &workers_;
  options.starts_together = !builds_[0].is_other() && !builds_[1].is_other();
  options.until = until;

  runner::Observer observer;
  const auto side_of = [&](const plan::PlannedCase& planned) { return planned.index == point.a.index ? 'A' : 'B'; };
  observer.started = [&](const plan::PlannedCase& planned) {
    const char side = side_of(planned);
    open_attempts_[index_of(side)] = new_uuid7();
    store_.attempt_started(runs_[index_of(side)], planned.index, open_attempts_[index_of(side)]);
  };
  observer.heartbeat = [&](const plan::PlannedCase& planned) {
    store_.heartbeat(open_attempts_[index_of(side_of(planned))]);
    progress_.heartbeat();
  };
  observer.progress = [&](const plan::PlannedCase&, const worker::ProgressRecord& record) {
    progress_.said(record.text);
  };
  const auto side = [&](char name) {
    const SideBuild& build = builds_[index_of(name)];
    return runner::PairedSide{std::string(1, name), case_of(point, name), plan_.mine, build.worker_command};
  };
  const runner::PairedSide a = side('A'), b = side('B');
  const int number = measured.launches();
  progress_.launching(static_cast<std::size_t>(point.a.index) / 2, shown_title(point), number, expected);
  const auto began = std::chrono::steady_clock::now();
  runner::PairedLaunch launch = runner::run_paired_launch(a, b, number, options, observer, interruption_);
  if (!launch.cut) measured.launch_seconds.push_back(Seconds(std::chrono::steady_clock::now() - began).count());
  if (!launch.complete() && !launch.cut) {
    measured.failed = failure(launch);
    measured.stop = interrupted() ? "interrupted" : "failed";
  }
  take_facts(measured, launch);
  measured.attempts.push_back({'A', number, store_attempt('A', std::move(launch.a))});
  measured.attempts.push_back({'B', number, store_attempt('B', std::move(launch.b))});
  progress_.launched(found(measured));
  return !launch.cut;
}

// What both sides' attempts say besides their times.
void ComparisonSession::take_facts(MeasuredPoint& measured, const runner::PairedLaunch& launch) {
  const std::array<const runner::AttemptResult*, 2> sides{&launch.a, &launch.b};
  for (std::size_t one = 0; one < 2; ++one) {
    const Json facts = json_or_discarded(sides[one]->facts_json);
    if (std::string code = kernel_code_of(facts); !code.empty()) measured.kernel_code[one] = std::move(code);
    const std::vector<stats::TimingWarning> warnings = timing_warnings(sides[one]->facts_json);
    stats::add_warnings(measured.warnings, launch.complete() ? warnings : of_results(warnings));
    if (!launch.complete()) continue;
    const auto take = [&](const char* name, std::vector<double>& into) {
      const Json value = facts.is_object() ? facts.value(name, Json()) : Json();
      if (value.is_number()) into.push_back(value.get<double>());
    };
    take("clock_mhz", measured.clock_mhz[one]);
    take("untimed_forward_seconds", measured.forward_seconds[one]);
    measured.resolution[one].take(sides[one]->facts_json);
  }
  if (!launch.complete()) return;
  measured.blocks.insert(measured.blocks.end(), launch.blocks.begin(), launch.blocks.end());
  if (std::ranges::any_of(measured.resolution, &PooledResolution::is_hopeless)) refuse_unresolved(measured);
}

std::string ComparisonSession::same_code(const plan::ComparisonPoint& point) const {
  if (conditions_.same_on_purpose || point.a.params != point.b.params || point.a.world_size != point.b.world_size)
    return {};
  const auto mine = [&](const std::string& name) { return std::ranges::find(plan_.mine, name, &Submitted::name); };
  const auto a = mine(point.a.implementation), b = mine(point.b.implementation);
  if (a == plan_.mine.end() || b == plan_.mine.end()) {
    const bool ours =
        a == plan_.mine.end() && b == plan_.mine.end() && point.a.implementation == point.b.implementation;
    return ours && builds_[0].code == builds_[1].code ? builds_[0].code : "";
  }
  if (builds_[0].path != builds_[1].path) return {};  // the same file, measured by two programs
  if (a->inside() != b->inside()) return {};
  // What a Python file imports, what a command's files load and what a library reads lies beside them and is in no
  // digest: then only the same file in the same place is the same code.
  std::error_code ignored;
  const auto place = [&](const Submitted& spec) {
    return spec.is_command() ? spec.path() : std::filesystem::weakly_canonical(spec.path(), ignored).string();
  };
  if (place(*a) == place(*b) && a->digest == b->digest) return a->digest;
  const auto code_of = [](const Submitted& spec) {
    return spec.is_python() || spec.is_command() ? "" : library_code_digest(spec.path());
  };
  const std::string code = code_of(*a);
  return code == code_of(*b) ? code : "";
}

verdict::Judgement ComparisonSession::judged(const MeasuredPoint& measured) const {
  verdict::Judgement judgement = judged_by_times(measured);
  judgement.warnings = measured.warnings;
  for (const char side : {'A', 'B'}) {
    const std::string shorter = in_words(measured.resolution[index_of(side)], label(side));
    if (judgement.log_ratio && !shorter.empty()) judgement.note += (judgement.note.empty() ? "" : " ") + shorter;
  }
  if (const auto warning = verdict::moved_forward(judgement, measured.forward_seconds, label('A'), label('B'))) {
    stats::add_warnings(judgement.warnings, {*warning});
  }
  return judgement;
}

verdict::Judgement ComparisonSession::judged_by_times(const MeasuredPoint& measured) const {
  if (!measured.failed) {
    verdict::Judgement judgement =
        verdict::judge(turns_of(measured.blocks), conditions_.delta, quantity_of(measured.point->a));
    const bool differs = judgement.differs();
    if (const std::string code = differs ? same_code(*measured.point) : ""; !code.empty()) {
      judgement = verdict::unclear(
          judgement, {.cause = verdict::Cause::same_code, .other = judgement.verdict, .text = code.substr(0, 12)});
    } else if (const auto& [a, b] = measured.kernel_code; differs && !a.empty() && a == b) {
      // Where to look, and nothing about whether: arguments, copies and waits are in no digest of kernels.
      judgement.note = fmt::format(
          "Both sides ran the same kernels on the GPU ({}): what differs is their arguments, how they are launched, "
          "copies or the host.",
          a.substr(0, 12));
    } else {
      judgement.note = what_would_do(judgement, measured.launch_seconds, measured.crowd);
      const std::optional<double> of_means = verdict::differing_means(judgement, turns_of(measured.blocks));
      if (judgement.note.empty() && of_means) judgement.note = words::about_means(judgement.quantity, *of_means);
    }
    if (measured.stop == "budget" && measured.launches() < verdict::kFewestLaunches) short_of_time(judgement, measured);
    return judgement;
  }
  if (measured.blocks.empty() || measured.stop != "interrupted") return *measured.failed;
  verdict::Judgement judgement =
      verdict::judge(turns_of(measured.blocks), conditions_.delta, quantity_of(measured.point->a));
  // The user may have seen the results before interrupting: no test, in a sweep neither.
  return verdict::unclear(judgement, {.cause = verdict::Cause::interrupted});
}

std::string ComparisonSession::keep(const MeasuredPoint& measured, const verdict::Judgement& judgement,
                                    const std::string& confirms) {
  store::ComparisonRow row;
  row.experiment = measured.point->a.experiment->id;
  row.params = measured.point->shared;
  const auto side = [&](char name) {
    Json json = side_json(*measured.point, name);
    if (const std::string& code = measured.kernel_code[index_of(name)]; !code.empty()) json["kernel_code"] = code;
    return json_text(json);
  };
  row.side_a_json = side('A');
  row.side_b_json = side('B');
  row.value_a = judgement.seconds_a;
  row.value_b = judgement.seconds_b;
  row.launches = judgement.launches;
  row.block_count = judgement.blocks;
  row.log_ratio = judgement.log_ratio;
  row.low = judgement.low;
  row.high = judgement.high;
  row.p_value = judgement.p_value;
  row.delta = judgement.delta;
  row.verdict = stats::to_string(judgement.verdict);
  row.reason = words::reason_or_note(judgement);
  row.confirms = confirms;
  Json facts{{"stop", measured.stop}, {"launch_seconds", measured.launch_seconds}};
  if (judgement.code != stats::TimingReason::none) facts["reason_code"] = stats::to_string(judgement.code);
  const int short_a = measured.resolution[0].too_short_alone(), short_b = measured.resolution[1].too_short_alone();
  if (short_a + short_b > 0) facts["launches_under_resolution"] = {{"A", short_a}, {"B", short_b}};
  if (measured.crowd) facts["crowd"] = {{"load", measured.crowd->load}, {"processors", measured.crowd->processors}};
  if (!judgement.warnings.empty()) facts["warnings"] = stats::to_json(judgement.warnings);
  row.facts_json = json_text(facts);
  for (const runner::PairedBlock& block : measured.blocks) {
    row.blocks.push_back({block.launch, block.block, block.order, block.seconds, block.log_ratio});
  }
  row.attempts = measured.attempts;
  return store_.add_comparison(runs_[1], row);
}

std::string ComparisonSession::label(char side) const {
  const std::string label = spec_of(plan_, side).label();
  return label.empty() ? "this build" : label;
}

std::string ComparisonSession::title(const plan::ComparisonPoint& point) const {
  plan::PlannedCase shared = point.a;
  shared.params = point.shared;
  shared.implementation = point.shared_impl;
  if (point.b.world_size != point.a.world_size) shared.world_size = 1;  // the sides' labels have theirs
  return label_of(shared);
}

Json ComparisonSession::side_json(const plan::ComparisonPoint& point, char side) const {
  const plan::PlannedCase& planned = case_of(point, side);
  Json json{{"label", label(side)},
            {"impl", planned.implementation},
            {"params", planned.params.to_json()},
            {"world_size", planned.world_size},
            {"run", run_uids_[index_of(side)]}};
  const SideBuild& build = builds_[index_of(side)];
  if (build.is_other())
    json["build"] = {{"path", build.path}, {"sha256", build.digest}, {"facts", parse_json(build.facts)}};
  if (!build.code.empty()) json["code"] = build.code;
  return json;
}

void ComparisonSession::set_launches(int launches, int blocks_per_launch) {
  conditions_.launches = launches;
  conditions_.blocks_per_launch = conditions_.fewest_blocks = blocks_per_launch;
}

std::string ComparisonSession::found(const MeasuredPoint& measured) const {
  if (measured.failed) {
    const std::string reason = words::reason(*measured.failed);
    return conditions_.shown_reason ? conditions_.shown_reason(reason) : reason;
  }
  if (is_unresolved(measured)) return "no time yet: the hand-over takes too much of it";
  const verdict::Judgement so_far =
      verdict::judge(turns_of(measured.blocks), conditions_.delta, quantity_of(measured.point->a));
  if (!so_far.log_ratio) return words::reason(so_far);
  if (conditions_.border) return words::speed_text(so_far);
  return fmt::format("{} ({})", words::change_text(so_far), words::interval_text(so_far));
}

std::string ComparisonSession::shown_title(const plan::ComparisonPoint& point) const {
  return conditions_.shown_title ? conditions_.shown_title(title(point), point.shared) : title(point);
}

Detection detection(const MeasuredPoint& pilot, double effect, double delta) {
  const std::vector<stats::PairedBlock> blocks = for_stats(pilot.blocks);
  const stats::PairedSpread spread = stats::paired_spread(blocks);
  const double per_block = pilot.seconds_per_block();
  const auto launches = static_cast<double>(pilot.launches());
  const double wall = pilot.seconds_per_launch();
  const double blocks_per_launch = static_cast<double>(blocks.size()) / launches;
  const stats::PairedCost cost{per_block, std::max(wall - blocks_per_launch * per_block, 0.0)};
  Detection found{stats::plan_detection(effect, delta, spread, cost), ""};
  const std::string took = format_seconds(found.plan.seconds);
  const std::string what = fmt::format("a change of {:g} % (δ = {:g} %)", 100 * effect, 100 * delta);
  if (found.plan.reached) {
    found.text = fmt::format("{} is called with 95 % probability by {} launches of {}: about {}", what,
                             found.plan.launches, counted(found.plan.blocks_per_launch, "block"), took);
  } else {
    const double told = stats::smallest_detectable(delta, spread, found.plan.launches, found.plan.blocks_per_launch);
    found.text =
        fmt::format("{} is beyond this machine now: even {} launches of {} ({}) tell no less than {:.2g} %", what,
                    found.plan.launches, counted(found.plan.blocks_per_launch, "block"), took, 100 * told);
  }
  return found;
}

}  // namespace syslab::cli
