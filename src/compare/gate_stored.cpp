#include "compare/gate_stored.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compare/verdict_table.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "session/attempt_queue.hpp"
#include "session/command_selection.hpp"
#include "session/no_time.hpp"
#include "session/pooled_resolution.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "session/stored_object.hpp"
#include "session/stored_run.hpp"
#include "session/summary.hpp"
#include "store/cells.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

using stats::Verdict;

constexpr int kLaunchesOfACase = 5;  // of each case, unless another number is asked for

CaseKey key_of(const plan::PlannedCase& planned) {
  return {planned.experiment->id, json_text(planned.params.to_json()), planned.implementation, planned.world_size};
}

// One case of the gate: the pinned result, the new measurement, and the judgement.
struct Gated {
  const plan::PlannedCase* planned = nullptr;
  StoredTimes pinned;
  bool can_be_judged = true;          // by what the pin holds; else it is not measured, and the judgement says why
  std::vector<std::string> attempts;  // of this round
  std::optional<Status> failed;
  PooledResolution resolution;                 // of all rounds
  std::vector<stats::TimingWarning> warnings;  // about results
  std::string why;
  verdict::Judgement judgement;
  std::string uid;
};

class StoredGate {
 public:
  StoredGate(const Context& context, store::Store& store, const Pinned& pinned, std::vector<Gated> cases,
             const GateOptions& options, const ComparisonConditions& conditions)
      : context_(context),
        store_(store),
        pinned_(pinned.run),
        plan_(pinned.plan),
        files_(pinned.files),
        arrival_(pinned.arrival),
        delta_(conditions.delta),
        cases_(std::move(cases)) {
    launches_ = options.launches.value_or(kLaunchesOfACase);
    of_run_ = conditions_from_json(pinned_.protocol_json);
    of_run_.timeout = conditions.timeout;
    of_run_.launches = 1;  // of a round: how many rounds is the gate's to say
    run_ = begin_run(context, store, "gate", options.label, plan_, of_run_);
  }

  Exit run(std::vector<GatedLine>& found) {
    const Exit exit = measured_and_told();
    for (const Gated& it : cases_) {
      found.push_back({label_of(*it.planned), it.judgement, annotated_file(plan_.mine, it.planned->implementation)});
    }
    return exit;
  }

 private:
  Exit measured_and_told() {
    const std::vector<std::string> differing = differing_conditions(store_, pinned_.id, run_);
    if (!differing.empty()) {
      for (Gated& it : cases_) it.judgement = verdict::incomparable(fmt::format("{}", fmt::join(differing, "; ")));
      for (Gated& it : cases_) keep(it, {});
      return report();
    }
    std::vector<Gated*> all;
    for (Gated& it : cases_) {
      if (it.can_be_judged) all.push_back(&it);
    }
    measure(all);
    std::vector<verdict::Judgement*> judgements;
    for (Gated& it : cases_) {
      if (it.can_be_judged) it.judgement = judged(it);
      judgements.push_back(&it.judgement);
      keep(it, {});
    }
    verdict::correct_for_sweep(judgements);
    store_sweep();
    confirm();
    return report();
  }

  // `launches_` rounds over the cases: each round is a launch of every case.
  void measure(const std::vector<Gated*>& cases) {
    plan::Plan plan = plan_;
    plan.cases.clear();
    for (Gated* it : cases) {
      it->attempts.clear();
      plan.cases.push_back(*it->planned);
    }
    runner::Observer observer;
    std::string attempt;
    observer.started = [&](const plan::PlannedCase& planned) {
      attempt = new_uuid7();
      store_.attempt_started(run_, planned.index, attempt);
    };
    observer.heartbeat = [&](const plan::PlannedCase&) { store_.heartbeat(attempt); };
    observer.finished = [&](runner::AttemptResult result) {
      Gated& it = cases_[static_cast<std::size_t>(result.planned->index)];
      it.resolution.take(result.facts_json);
      stats::add_warnings(it.warnings, of_results(timing_warnings(result.facts_json)));
      it.attempts.push_back(store_.finish_attempt(run_, attempt_row(std::exchange(attempt, {}), result)));
      if (result.status != Status::ok && !it.failed) {
        it.failed = result.status;
        it.why = fmt::format("{}{}", syslab::to_string(result.status),
                             result.detail.empty() ? "" : ": " + result.detail.substr(0, result.detail.find('\n')));
      }
    };
    for (int round = 0; round < launches_; ++round) {
      // A case that failed is not tried again.
      std::erase_if(plan.cases, [&](const plan::PlannedCase& planned) {
        return cases_[static_cast<std::size_t>(planned.index)].failed.has_value();
      });
      if (!runner::run_plan(plan, to_run_options(context_, of_run_), observer, interruption_)) {
        interrupted_ = true;
        return;
      }
      context_.console.note(fmt::format("launch {} of {}", round + 1, launches_));
    }
  }

  verdict::Judgement judged(const Gated& it) const {
    if (it.failed) {
      verdict::Judgement judgement = verdict::incomparable(it.why);
      judgement.failed_b = it.failed;
      judgement.warnings = it.warnings;
      return judgement;
    }
    if (const std::optional<NoTime> why = it.resolution.no_time()) return under_resolution('B', *why);
    std::vector<double> now;
    for (const auto& [key, times] : stored_times(store_, run_)) {
      if (key == key_of(*it.planned)) now = times.launch_medians;
    }
    // In a second round, only the newest launches.
    if (now.size() > it.attempts.size())
      now.erase(now.begin(), now.end() - static_cast<std::ptrdiff_t>(it.attempts.size()));
    if (now.empty()) {
      verdict::Judgement judgement = verdict::incomparable("not measured");
      judgement.failed_b = Status::aborted;
      return judgement;
    }
    verdict::Judgement judgement =
        verdict::judge_stored(it.pinned.launch_medians, now, delta_, quantity_of(*it.planned));
    judgement.warnings = it.warnings;
    judgement.note = in_words(it.resolution, "now");
    return judgement;
  }

  void keep(Gated& it, const std::string& confirms) {
    store::ComparisonRow row;
    row.mode = "stored";
    row.experiment = it.planned->experiment->id;
    row.params = it.planned->params;
    row.side_a_json = json_text(side("pinned " + pinned_.uid, *it.planned, pinned_.uid));
    row.side_b_json = json_text(side("now", *it.planned, store_.run_uid(run_)));
    row.value_a = it.judgement.seconds_a;
    row.value_b = it.judgement.seconds_b;
    row.launches = it.judgement.launches;
    row.log_ratio = it.judgement.log_ratio;
    row.low = it.judgement.low;
    row.high = it.judgement.high;
    row.p_value = it.judgement.p_value;
    row.delta = it.judgement.delta;
    row.verdict = stats::to_string(it.judgement.verdict);
    row.reason = words::reason_or_note(it.judgement);
    row.confirms = confirms;
    for (const std::string& attempt : it.pinned.attempts) row.attempts.push_back({'A', 0, attempt});
    for (const std::string& attempt : it.attempts) row.attempts.push_back({'B', 0, attempt});
    it.uid = store_.add_comparison(run_, row);
  }

  static Json side(const std::string& label, const plan::PlannedCase& planned, const std::string& run) {
    return {{"label", label}, {"impl", planned.implementation}, {"params", planned.params.to_json()}, {"run", run}};
  }

  void store_sweep() {
    std::vector<store::SweepVerdict> verdicts;
    for (const Gated& it : cases_) {
      const verdict::Judgement& judgement = it.judgement;
      if (!judgement.q_value) continue;
      verdicts.push_back({it.uid, judgement.tests, *judgement.q_value, std::string(stats::to_string(judgement.verdict)),
                          words::reason(judgement)});
    }
    store_.add_sweep_verdicts(verdicts);
  }

  void confirm() {
    std::vector<Gated*> slower;
    for (Gated& it : cases_) {
      if (it.judgement.verdict == Verdict::slower) slower.push_back(&it);
    }
    if (interrupted_) {
      for (Gated* it : slower) it->judgement = verdict::not_confirmed(it->judgement);
    }
    if (slower.empty() || interrupted_) return;
    context_.console.note(
        fmt::format("{} slower; measured once more", counted(static_cast<std::int64_t>(slower.size()), "case")));
    measure(slower);
    for (Gated* it : slower) {
      const verdict::Judgement first = it->judgement;
      const std::string first_uid = it->uid;
      it->judgement = judged(*it);
      keep(*it, first_uid);
      it->judgement = verdict::confirmed(first, it->judgement);
    }
  }

  // Behind what is unclear; launches of one side alone tell no more than the fewer of the other.
  std::string what_would_tell() const {
    const bool unclear = std::ranges::any_of(cases_, [](const Gated& it) {
      return it.judgement.verdict == stats::Verdict::unclear && it.judgement.low.has_value();
    });
    if (!unclear) return {};
    return fmt::format(
        "What is unclear is told by more launches of both sides (--launches of the pinned run and of the gate), "
        "asked with a larger --delta, or measured in turns ({}).\n",
        changed_files(files_).empty() ? "--build, where that program made the pin"
                                      : "`compare`, with a copy of the old file");
  }

  Exit report() const {
    Exit exit = interrupted_ ? Exit::incomplete : Exit::well;
    std::vector<VerdictLine> lines;
    for (const Gated& it : cases_) {
      exit = worse(exit, exit_of(it.judgement, it.planned->experiment->oom_is_an_answer));
      lines.push_back({label_of(*it.planned), it.judgement});
      if (context_.console.json()) {
        Json json = words::to_json(it.judgement);
        json["type"] = "comparison";
        json["comparison"] = it.uid;
        json["mode"] = "stored";
        json["run"] = store_.run_uid(run_);
        json["case"] = lines.back().title;
        json["pin"] = {{"run", pinned_.uid}, {"self_reported", arrival_.has_value()}};
        if (arrival_) json["pin"].update({{"how", arrival_->how}, {"source", arrival_->source}});
        context_.console.print_line(json);
      }
    }
    if (!context_.console.json()) {
      const std::string told = self_reported_sentence(arrival_);
      context_.console.print(
          (told.empty() ? "" : told + "\n") +
          "Against stored values, not measured in turns: whatever changed on this machine since then counts as a "
          "change. " +
          hint_of_turns(files_) + "\n" + verdict_table(context_.console, lines, words::kPinnedSide, words::kNowSide) +
          what_would_tell() + fmt::format("run {}\n", store_.run_uid(run_)));
    }
    return exit;
  }

  const Context& context_;
  store::Store& store_;
  const store::StoredRun& pinned_;
  const plan::Plan& plan_;
  const std::vector<PinnedFile>& files_;
  const std::optional<Arrival>& arrival_;
  std::optional<double> delta_;
  int launches_ = kLaunchesOfACase;
  Conditions of_run_;
  store::RowId run_ = 0;
  std::vector<Gated> cases_;
  runner::Interruption interruption_;  // from the first launch to the last word
  bool interrupted_ = false;
};

// The pinned run's cases. Those without a time, or with too few launches for a verdict, are reported as such, and not
// measured.
std::vector<Gated> gated_cases(const store::Store& store, const store::StoredRun& pinned, const plan::Plan& plan) {
  const auto times = stored_times(store, pinned.id);
  const auto without_time = stored_without_time(store, pinned.id);
  std::vector<Gated> cases;
  for (const plan::PlannedCase& planned : plan.cases) {
    Gated& it = cases.emplace_back();
    it.planned = &planned;
    if (const auto found = times.find(key_of(planned)); found != times.end()) it.pinned = found->second;
    const auto launches = static_cast<int>(it.pinned.launch_medians.size());
    it.can_be_judged = launches >= verdict::kFewestLaunches;
    if (it.can_be_judged) continue;
    if (const auto found = without_time.find(key_of(planned)); found != without_time.end()) {
      const NoTime& why = found->second;
      it.judgement = verdict::incomparable(
          fmt::format("not measured: in the pinned run it {}: {}", verdict_of(why), in_words(why)));
      it.judgement.code = why.reason;
      continue;
    }
    it.judgement.reason.cause = verdict::Cause::no_stored_time;
    it.judgement.launches_of_side[0] = launches;
  }
  return cases;
}

// The command that made the run, asking for so many launches.
std::string with_launches(const store::StoredRun& run, int launches) {
  if (run.verb != "run") return fmt::format("syslab run … --launches {}", launches);
  const std::vector<std::string>& argv = run.argv;
  std::string command;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (argv[i].starts_with("--launches")) {
      if (argv[i] == "--launches") ++i;  // and its number
      continue;
    }
    command += shell_word(argv[i]) + " ";
  }
  return command + fmt::format("--launches {}", launches);
}

// Where no case can be judged by what the pin holds.
[[noreturn]] void refuse_all(const Pinned& pinned, const std::vector<Gated>& cases, const std::string& against) {
  const bool can_build = changed_files(pinned.files).empty();  // --build would not refuse it
  const auto unresolved = std::ranges::count_if(
      cases, [](const Gated& it) { return it.judgement.code == stats::TimingReason::under_resolution; });
  const auto few = static_cast<std::int64_t>(cases.size()) - unresolved;
  if (unresolved > 0) {
    const Gated& first = *std::ranges::find(cases, stats::TimingReason::under_resolution,
                                            [](const Gated& it) { return it.judgement.code; });
    const std::string others =
        few > 0 ? fmt::format(", and fewer than {} launches of {}", verdict::kFewestLaunches, counted(few, "other"))
                : "";
    throw Error(ErrorKind::usage, fmt::format("run {} holds no time of {}{}; expected one to compare with. {}: {}",
                                              pinned.run.uid, counted(unresolved, "case"), others,
                                              label_of(*first.planned), words::reason(first.judgement)));
  }
  throw Error(ErrorKind::usage,
              fmt::format("run {} holds fewer than {} launches of every case, and against stored values a verdict "
                          "takes so many. Make a pin of as many, `{}` and `syslab pin {} latest`{}",
                          pinned.run.uid, verdict::kFewestLaunches, with_launches(pinned.run, verdict::kFewestLaunches),
                          shell_word(against), can_build ? "; or give --build, the program that made this one" : ""));
}

}  // namespace

std::string self_reported_sentence(const std::optional<Arrival>& arrival) {
  if (!arrival) return {};
  return fmt::format(
      "The pinned run is self-reported: it was {} '{}', not measured here. If you vouch for its times: `syslab merge "
      "--trust`.",
      arrival->how == "import" ? "imported from" : "merged from", arrival->source);
}

std::string build_of_run(const store::Store& store, store::RowId run) {
  return store
      .query("SELECT b.facts FROM run r JOIN build b ON b.id = r.build_id WHERE r.id = ?1", {store::integer_cell(run)})
      .rows.at(0)[0]
      .text;
}

Exit gate_by_stored(const Context& context, store::Store& store, const Pinned& pinned, const GateOptions& options,
                    const ComparisonConditions& conditions, std::vector<GatedLine>& lines) {
  if (StoredObject("run.protocol", pinned.run.protocol_json).value("name", std::string()) == kPairedProtocol) {
    throw Error(
        ErrorKind::usage,
        fmt::format("run {} was measured in turns with another side; its times stand for nothing alone. {} a run "
                    "made by `syslab run --launches 3`",
                    pinned.run.uid, changed_files(pinned.files).empty() ? "Give --build, or pin" : "Pin"));
  }
  std::vector<Gated> cases = gated_cases(store, pinned.run, pinned.plan);
  if (std::ranges::none_of(cases, &Gated::can_be_judged)) refuse_all(pinned, cases, options.against);
  return StoredGate(context, store, pinned, std::move(cases), options, conditions).run(lines);
}

}  // namespace syslab::cli
