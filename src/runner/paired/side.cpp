#include "runner/paired/side.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/units.hpp"
#include "runner/paired/gang.hpp"
#include "runner/request.hpp"
#include "worker/cases/command_params.hpp"

namespace syslab::runner {

namespace {

bool prints_its_number(const plan::PlannedCase& planned) {
  return planned.experiment->id == worker::kCommandExperiment && planned.params.has(worker::kCommandReads) &&
         planned.params.text(worker::kCommandReads) != worker::kProcessTime;
}

}  // namespace

worker::CaseRequest burst_request(const PairedSide& side, const PairedOptions& options) {
  worker::CaseRequest request = request_for(side.planned, side.mine, options);
  request.task = Task::paired;
  request.burst = options.burst;
  // Of a file of somebody's there would be names alone, which no comparison shows, for another start of its framework.
  request.kernel_code = options.kernel_code && !request.mine && wants_kernel_code(side.planned);
  request.starts = options.starts_together;
  request.fresh = options.workers != nullptr && request.mine && request.mine->is_function();
  return request;
}

// A median: half of the calls may have taken no time at all, the other half at least as much as it.
void require_plausible(const plan::PlannedCase& planned, const worker::Burst& burst, const worker::Ready& ready,
                       Nanoseconds whole) {
  if (prints_its_number(planned)) return;
  const double told = burst.seconds_per_call * static_cast<double>(ready.calls_per_burst) / 2;
  if (told <= Seconds(whole).count()) return;
  throw Error(
      ErrorKind::comm,
      fmt::format("the worker tells of a burst of {} calls that takes {:.6g} s a call, but the whole of it took "
                  "{:.6g} s",
                  ready.calls_per_burst, burst.seconds_per_call, Seconds(whole).count()));
}

AttemptResult side_result(const PairedSide& side, Launch judged, const std::string& abandoned, Json facts) {
  AttemptResult made;
  made.planned = &side.planned;
  made.status = abandoned.empty() ? judged.status : Status::aborted;
  made.detail = abandoned.empty() ? std::move(judged.detail) : abandoned;
  made.records = std::move(judged.records);
  Json all = parse_json(judged.facts_json);
  all["device"] = to_string(side.planned.device);
  all["paired"] = std::move(facts);
  made.facts_json = repaired_json_text(all);
  return made;
}

std::unique_ptr<Side> start_side(const PairedSide& side, const PairedOptions& options, const Observer& observer,
                                 Watch& watch, Clock::time_point deadline) {
  if (side.planned.world_size > 1 && !starts_ranks(side.planned))
    return std::make_unique<GangSide>(side, options, observer, watch, deadline);
  return std::make_unique<SideRun>(side, options, observer, watch, deadline);
}

SideRun::SideRun(const PairedSide& side, const PairedOptions& options, const Observer& observer, Watch& watch,
                 Clock::time_point deadline)
    : side_(side),
      options_(options),
      command_(side.worker_command.empty() ? own_worker_command() : side.worker_command),
      observer_(observer),
      watch_(watch),
      deadline_(deadline),
      began_(Clock::now()),
      started_at_(utc_now()) {
  if (observer_.started) observer_.started(side_.planned);
  try {
    worker::CaseRequest request = burst_request(side, options);
    fresh_ = request.fresh;
    starts_ = request.starts;
    if (fresh_) {
      SideWorkers::Kept kept = options.workers->take(side.label);
      worker_ = std::move(kept.worker);
      ending_.cases_before = kept.cases;
    }
    if (worker_) {
      worker_->resume();
    } else {
      worker_ = std::make_unique<WorkerProcess>(WorkerProcess::Command{command_, {}});
    }
    request.timeout = deadline_ - began_;  // of the launch; the other side has had its share
    worker_->send(worker::to_json(request));
  } catch (const Error& error) {
    if (!WorkerProcess::could_not_start(error)) throw;
    ending_.not_started = error.what();
    bury();
  }
}

bool SideRun::start() {
  if (!starts_) return true;
  if (!hear("started", [](const Json&) {})) return false;
  worker_->suspend();
  return true;
}

bool SideRun::prepare() {
  if (starts_) {
    worker_->resume();
    worker_->send({{"type", "go"}});
  }
  if (!hear("ready", [this](const Json& message) { ready_ = worker::ready_from_json(message); })) return false;
  stopped_ = worker_->suspend();
  cpu_.emplace(worker_->pid());
  return true;
}

std::optional<double> SideRun::burst() {
  worker::Burst burst;
  const auto begin = Clock::now();
  worker_->resume();
  worker_->send({{"type", "burst"}});
  const bool answered = hear("burst", [&](const Json& message) {
    burst = worker::burst_from_json(message);
    require_plausible(side_.planned, burst, ready_, Clock::now() - begin);
  });
  if (!answered) return std::nullopt;
  stopped_ = worker_->suspend();
  return burst.seconds_per_call;
}

bool SideRun::finish() {
  worker_->resume();
  worker_->send({{"type", "finish"}});
  return hear("end", {});
}

void SideRun::abandon(const std::string& reason) {
  if (ended_) return;
  abandoned_ = reason;
  worker_->kill();
  bury();
}

void SideRun::end_as_restless() {
  if (ended_) return;
  ending_.is_restless = true;
  worker_->kill();
  bury();
}

// Stores records until the wanted message comes, which is passed to `use`. False if nothing more will come; then the
// side has ended. After `end` it has ended in either case.
bool SideRun::hear(std::string_view wanted, const std::function<void(const Json&)>& use) {
  while (!ended_) {
    const Heard heard = worker_->next(deadline_, watch_);
    switch (heard.state) {
      case Heard::State::message:
        try {
          if (take(heard.text, wanted, use)) return true;
        } catch (const Error& error) {
          ending_.wire_error = error.what();
        }
        pass_on_progress();
        if (!ending_.end && ending_.wire_error.empty()) continue;
        break;
      case Heard::State::late:
        ending_.timed_out = true;
        break;
      case Heard::State::interrupted:
        ending_.interrupted = watch_.interruption().signal();
        break;
      case Heard::State::broken:
        ending_.wire_error = heard.text;
        break;
      case Heard::State::gone:
        break;
    }
    if (may_stay()) {
      set_aside();
      continue;
    }
    if (ending_.end && ending_.wire_error.empty()) {
      worker_->send({{"type", "bye"}});
    } else if (heard.state != Heard::State::gone) {
      worker_->kill();
    }
    bury();
  }
  return wanted == "end" && ending_.end && ending_.wire_error.empty();
}

bool SideRun::take(const std::string& text, std::string_view wanted, const std::function<void(const Json&)>& use) {
  require_bursts(*worker_);
  const Json message = parse_message(text);
  if (use && message.value("type", Json()) == wanted) return use(message), true;
  if (auto taken = intake_.take(text)) progress_ = std::move(taken);
  if (ending_.end && ending_.end->status == Status::ok && wanted != "end") {
    throw Error(ErrorKind::comm, fmt::format("the worker ended its case where '{}' was asked", wanted));
  }
  return false;
}

void SideRun::pass_on_progress() {
  if (progress_ && observer_.progress) observer_.progress(side_.planned, *progress_);
  progress_.reset();
}

// Whether the next launch may have the worker: the case ended well, with all that it started.
bool SideRun::may_stay() const {
  return fresh_ && ending_.end && ending_.wire_error.empty() && ending_.end->status == Status::ok &&
         worker_->serves("fresh") && worker_->is_idle();
}

void SideRun::set_aside() {
  ending_.shared = true;
  ending_.stderr_tail = worker_->last_lines(40);
  ending_.last_lines = worker_->last_lines(5);
  worker_->forget_output();
  if (worker_->suspend().reached()) {
    options_.workers->keep(side_.label, {std::move(worker_), ending_.cases_before + 1});
  } else {
    worker_.reset();
  }
  end();
}

void SideRun::bury() {
  if (worker_) intake_.bury(*worker_);
  end();
}

void SideRun::end() {
  ended_ = true;
  wall_ = Clock::now() - began_;
  ended_at_ = utc_now();
}

AttemptResult SideRun::result(Json facts) {
  AttemptResult made = side_result(side_, judge(ending_, options_, witness_), abandoned_, std::move(facts));
  made.started_at = started_at_;
  made.ended_at = ended_at_;
  made.wall = wall_;
  return made;
}

}  // namespace syslab::runner
