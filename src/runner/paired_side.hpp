// One side of a paired launch: a worker that is made ready, orders taken one at a time, and what became of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/json.hpp"
#include "runner/intake.hpp"
#include "runner/paired.hpp"
#include "runner/paired_cpu.hpp"
#include "runner/verdict.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

// What takes turns with another.
class Side {
 public:
  virtual ~Side() = default;

  // Each waits for the side's answer. False (nothing): the side has ended or was ended; result() says how.
  virtual bool prepare() = 0;
  virtual std::optional<double> burst() = 0;  // seconds per call
  virtual bool finish() = 0;

  // The other side's doing: this one is killed, `aborted` for this reason, unless it has ended.
  virtual void abandon(const std::string& reason) = 0;

  virtual bool ended() const = 0;
  virtual const worker::Ready& ready() const = 0;
  virtual Nanoseconds cpu_time() const = 0;  // since ready, of all its processes
  // Once it has ended. `facts` (an object) is stored as its fact "paired".
  virtual AttemptResult result(Json facts) = 0;
};

// One worker, or of a case of several ranks one each (runner/paired_gang.hpp). What is borrowed must outlive it.
std::unique_ptr<Side> start_side(const PairedSide& side, const PairedOptions& options, const Observer& observer,
                                 Watch& watch, Clock::time_point deadline);

// What workers of a side are asked, and how their ends are judged.
worker::CaseRequest burst_request(const PairedSide& side, const PairedOptions& options);
RunOptions run_options(const PairedOptions& options);
// Error(comm) when the calls of a burst cannot have taken as long as the worker says within `whole`.
void require_plausible(const worker::Burst& burst, const worker::Ready& ready, Nanoseconds whole);

// Between two orders every process of the side stands still (SIGSTOP): threads that would go on spinning after a burst,
// as those of OpenMP and OpenBLAS do by default, wait for the side's next turn instead, and are found then as a loop
// without pauses would find them. Nothing about the implementation's own settings is changed.
class SideRun final : public Side {
 public:
  SideRun(const PairedSide& side, const PairedOptions& options, const Observer& observer, Watch& watch,
          Clock::time_point deadline);

  bool prepare() override;
  std::optional<double> burst() override;
  bool finish() override;
  void abandon(const std::string& reason) override;
  bool ended() const override { return ended_; }
  const worker::Ready& ready() const override { return ready_; }
  Nanoseconds cpu_time() const override { return cpu_ ? cpu_->used() : Nanoseconds{}; }
  AttemptResult result(Json facts) override;

 private:
  bool hear(std::string_view wanted, const std::function<void(const Json&)>& use);
  bool take(const std::string& text, std::string_view wanted, const std::function<void(const Json&)>& use);
  void pass_on_progress();
  void bury();

  const PairedSide& side_;
  const PairedOptions& options_;
  std::vector<std::string> command_;
  const Observer& observer_;
  Watch& watch_;
  Clock::time_point deadline_, began_;
  OomWitness witness_;
  std::unique_ptr<WorkerProcess> worker_;
  std::optional<GroupCpuClock> cpu_;
  worker::Ready ready_;
  std::string started_at_, ended_at_;
  Nanoseconds wall_{};
  std::optional<worker::ProgressRecord> progress_;  // not passed on yet
  Intake intake_;
  Ending& ending_ = intake_.ending;
  bool ended_ = false;
  std::string abandoned_;  // why
};

}  // namespace syslab::runner
