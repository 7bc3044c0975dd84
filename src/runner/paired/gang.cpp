#include "runner/paired/gang.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "core/text/units.hpp"
#include "runner/ranks/code.hpp"
#include "runner/request.hpp"

namespace syslab::runner {

GangSide::GangSide(const PairedSide& side, const PairedOptions& options, const Observer& observer, Watch& watch,
                   Clock::time_point deadline)
    : side_(side),
      options_(options),
      observer_(observer),
      watch_(watch),
      deadline_(deadline),
      began_(Clock::now()),
      started_at_(utc_now()) {
  if (observer_.started) observer_.started(side_.planned);
  gang_ = std::make_unique<Gang>(burst_request(side, options), command(),
                                 side.planned.experiment->limit_of_waits(side.planned.params));
}

WorkerProcess::Command GangSide::command() const {
  return {side_.worker_command.empty() ? own_worker_command() : side_.worker_command, {}, options_.places};
}

bool GangSide::hear(std::string_view wanted, const Gang::Use& use) {
  return gang_->hear(wanted, use, {deadline_, watch_, [this](const worker::ProgressRecord& progress) {
                                     if (observer_.progress) observer_.progress(side_.planned, progress);
                                   }});
}

bool GangSide::prepare() {
  std::vector<worker::Ready> of_rank(static_cast<std::size_t>(side_.planned.world_size));
  const auto take = [&](int rank, const Json& message) {
    of_rank[static_cast<std::size_t>(rank)] = worker::ready_from_json(message);
  };
  if (!hear("ready", take)) return false;
  ready_ = of_rank.front();
  for (std::size_t rank = 1; rank < of_rank.size(); ++rank) {
    if (of_rank[rank].calls_per_burst != ready_.calls_per_burst) {
      gang_->end_all(fmt::format("the ranks disagree: rank 0 makes {} calls a burst and rank {} makes {}",
                                 ready_.calls_per_burst, rank, of_rank[rank].calls_per_burst));
      return false;
    }
    ready_.seconds_per_call = std::max(ready_.seconds_per_call, of_rank[rank].seconds_per_call);
  }
  for (const pid_t pid : gang_->pids()) cpu_.emplace_back(pid);
  return true;
}

std::optional<double> GangSide::burst() {
  double slowest = 0;
  const auto begin = Clock::now();
  gang_->send({{"type", "burst"}});
  const auto take = [&](int, const Json& message) {
    const worker::Burst burst = worker::burst_from_json(message);
    require_plausible(side_.planned, burst, ready_, Clock::now() - begin);
    slowest = std::max(slowest, burst.seconds_per_call);
  };
  if (!hear("burst", take)) return std::nullopt;
  return slowest;
}

bool GangSide::finish() {
  gang_->send({{"type", "finish"}});
  hear({}, {});
  return gang_->ended_well();
}

void GangSide::abandon(const std::string& reason) {
  if (ended()) return;
  abandoned_ = reason;
  gang_->end_all(reason);
}

Nanoseconds GangSide::cpu_time() const {
  Nanoseconds used{};
  for (const GroupCpuClock& clock : cpu_) used += clock.used();
  return used;
}

AttemptResult GangSide::result(Json facts) {
  const std::string ended_at = utc_now();
  const Nanoseconds wall = Clock::now() - began_;
  std::vector<RankEnding> ranks = gang_->endings();
  Launch judged = judge_ranks(ranks, options_, witness_);
  if (abandoned_.empty() && judged.status == Status::ok) {  // of the first launch alone, which asks
    judged.facts_json =
        with_code_of_ranks(judged.facts_json, burst_request(side_, options_), command(),
                           side_.planned.experiment->limit_of_waits(side_.planned.params), deadline_, watch_);
  }
  AttemptResult made = side_result(side_, std::move(judged), abandoned_, std::move(facts));
  made.started_at = started_at_;
  made.ended_at = ended_at;
  made.wall = wall;
  return made;
}

}  // namespace syslab::runner
