#include "runner/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "runner/intake.hpp"
#include "runner/patience.hpp"
#include "runner/verdict.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

// The records of one case as they come from one worker, until its end.
class Listener {
 public:
  Listener(const LaunchOrder& order, const Lease& lease, const Observer& observer, const Interruption& interruption)
      : order_(order), lease_(lease), observer_(observer), interruption_(interruption), deadline_(order.deadline) {
    intake_.sender = fmt::format("the worker of '{}'", order.request.implementation);
    ending_.shared = lease.shared;
    ending_.worker = lease.ordinal;
    ending_.cases_before = lease.cases_before;
    if (lease.cases_before > 0) lease.worker->forget_output();
    // All at once. If a worker dies before it has read them, its end explains it, not our failed write.
    lease.worker->send(worker::to_json(order.request));
    if (!lease.shared) lease.worker->send({{"type", "bye"}});
  }

  // Waits until the case has ended and, unless it is shared, its worker too, for whatever reason.
  Ending hear() {
    Watch watch(interruption_, [this] {
      if (observer_.heartbeat) observer_.heartbeat(order_.planned);
    });
    while (true) {
      const auto wake = progress_ ? std::min(deadline_, next_progress_) : deadline_;
      const Heard heard = lease_.worker->next(wake, watch);
      if (Clock::now() >= next_progress_) pass_on_progress();
      if (heard.state == Heard::State::message && accept(heard.text)) {
        if (lease_.shared && ending_.end) break;
        continue;
      }
      if (heard.state == Heard::State::late && Clock::now() < deadline_) continue;
      if (heard.state == Heard::State::interrupted) ending_.interrupted = interruption_.signal();
      if (heard.state == Heard::State::late) ending_.timed_out = !ending_.end;
      if (heard.state == Heard::State::broken) ending_.wire_error = heard.text;
      if (heard.state != Heard::State::gone) lease_.worker->kill();
      intake_.bury(*lease_.worker);
      break;
    }
    if (!ending_.exit) {
      ending_.stderr_tail = lease_.worker->last_lines(40);
      ending_.last_lines = lease_.worker->last_lines(5);
    }
    pass_on_progress();
    return std::move(ending_);
  }

 private:
  bool accept(const std::string& text) {
    const bool accepted = intake_.accept(text, progress_);
    if (ending_.end) deadline_ = std::min(deadline_, Clock::now() + kExitingTime);
    return accepted;
  }

  void pass_on_progress() {
    if (!progress_) return;
    if (!order_.progress_of.empty()) progress_->text = order_.progress_of + ", " + progress_->text;
    if (observer_.progress) observer_.progress(order_.planned, *progress_);
    progress_.reset();
    next_progress_ = Clock::now() + kProgressPause;
  }

  const LaunchOrder& order_;
  const Lease lease_;
  const Observer& observer_;
  const Interruption& interruption_;
  Clock::time_point deadline_;
  std::optional<worker::ProgressRecord> progress_;  // not passed on yet
  Clock::time_point next_progress_{};
  Intake intake_;
  Ending& ending_ = intake_.ending;
};

bool leaves_the_worker_well(Status status) {
  return status == Status::ok || status == Status::check_failed || status == Status::unsupported;
}

}  // namespace

Launch run_launch(const LaunchOrder& order, const RunOptions& options, Workers& workers, const Observer& observer,
                  const Interruption& interruption) {
  const OomWitness witness;
  Ending ending;
  bool lives = false;
  try {
    const Lease lease = workers.take(order.request, order.fresh);
    try {
      ending = Listener(order, lease, observer, interruption).hear();
    } catch (...) {
      workers.give_back(false);
      throw;
    }
    lives = !ending.exit;
  } catch (const Error& error) {
    if (!WorkerProcess::could_not_start(error)) throw;
    ending.not_started = error.what();
  }
  Launch launch = judge(ending, options, witness);
  workers.give_back(lives && leaves_the_worker_well(launch.status));
  return launch;
}

}  // namespace syslab::runner
