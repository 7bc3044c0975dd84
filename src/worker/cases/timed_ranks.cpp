#include "worker/cases/timed_ranks.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/cases/channel_training.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/rank_case.hpp"
#include "worker/judged/foreign.hpp"
#include "worker/wire/tell_ranks.hpp"

namespace syslab::worker {
namespace {

constexpr int kLawCases = 4;  // of each, before a time

void hold_laws(CaseContext& context, const std::vector<check::Law>& laws) {
  for (const check::Law& law : laws) {
    context.progress(0, "searching " + law.id);
    check::LawRequest request;
    request.contract = check::Contract::handout;
    request.seed = context.request().seed;
    request.max_success = kLawCases;
    const check::LawResult found = law.search(request);
    // Of a law beyond the hand-out only what the ranks themselves object to: a class that shows all it holds is timed.
    if (!law.asked_by_handout && found.finding.kind != FindingKind::raised) continue;
    if (found.outcome != check::Outcome::not_run) context.emit(check_record(law, request.contract, found));
    // It refused all that was asked, or so much that too little is known of it.
    if (found.outcome == check::Outcome::not_run || found.outcome == check::Outcome::gave_up) {
      throw Unsupported(fmt::format("not timed, since {} was not checked: {}", law.id, found.message));
    }
    if (found.outcome != check::Outcome::passed) {
      throw CheckFailed(fmt::format("not timed, since {} does not hold: {}", law.id, found.message));
    }
  }
}

}  // namespace

void run_timed_ranks(CaseContext& context, const TimedRanks& timed) {
  hold_laws(context, timed.laws);
  RankCase made;
  made.in_another_process = true;
  made.of_first = [](double own) { return own; };
  made.barrier = [] {};
  made.check = [](device::Stream) { return std::vector<StepCheck>{}; };
  made.start = [&](device::Stream) {
    const auto training = std::make_shared<ChannelTraining>(
        context, timed, context.request().mine ? context.rank_channel() : context.lab_ranks());
    RankRun run;
    run.owner = training;
    RankSeries& steps = run.series.emplace_back();
    steps.refresh = [training] { training->refresh(); };
    steps.call = [training] { training->step(); };
    steps.self_time = [training] { return training->seconds(); };
    steps.verify = [training] { return training->check_loss(); };
    // Ranks that send nothing train apart, each on its own.
    if (timed.training.at("communicates")) steps.verify_all = [training] { return training->check_weights(); };
    run.tell = [training, &timed](CaseContext& told, const std::vector<std::vector<double>>& seconds) {
      training->keep();
      tell_ranks(told, timed, *training, seconds[0]);
    };
    return run;
  };
  run_rank_case(context, made);
}

}  // namespace syslab::worker
