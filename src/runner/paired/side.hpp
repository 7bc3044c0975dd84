// One side of a paired launch: prepares a worker, executes orders one at a time, and reports the result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/text/json.hpp"
#include "runner/intake.hpp"
#include "runner/paired/cpu.hpp"
#include "runner/paired/paired.hpp"
#include "runner/paired/side_workers.hpp"
#include "runner/verdict.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

// One of two sides that take turns.
class Side {
 public:
  virtual ~Side() = default;

  // Each waits for the side's answer. False (or nothing) if the side has ended; result() says how. start() comes first,
  // where the sides start together: its processes are there, and have called nothing.
  virtual bool start() { return true; }
  virtual bool prepare() = 0;
  virtual std::optional<double> burst() = 0;  // seconds per call
  virtual bool finish() = 0;

  // Because of the other side: kills this one, `aborted` with this reason, unless it has ended.
  virtual void abandon(const std::string& reason) = 0;

  // Nothing of it has run since its last answer. Ranks are not stopped (runner/paired/gang.hpp), and nothing is said of
  // them; the others end, if they would not stand still, as an error.
  virtual bool stands_still() const { return true; }
  virtual void end_as_restless() {}

  virtual bool ended() const = 0;
  virtual const worker::Ready& ready() const = 0;
  virtual Nanoseconds cpu_time() const = 0;  // since ready, of all its processes
  // Once it has ended. `facts` (an object) is stored as its fact "paired".
  virtual AttemptResult result(Json facts) = 0;
};

// One worker, or one per rank (runner/paired/gang.hpp). References must outlive it.
std::unique_ptr<Side> start_side(const PairedSide& side, const PairedOptions& options, const Observer& observer,
                                 Watch& watch, Clock::time_point deadline);

// The request for a side's workers.
worker::CaseRequest burst_request(const PairedSide& side, const PairedOptions& options);
// What became of a side, but for its times. `abandoned`: why it was killed because of the other; else empty.
AttemptResult side_result(const PairedSide& side, Launch judged, const std::string& abandoned, Json facts);
// Error(comm) if the time that the worker reports for a burst's calls does not fit within `whole`. A number that a
// command prints is no such time: of a rate it is that of one unit, and a program may count its processors' time.
void require_plausible(const plan::PlannedCase& planned, const worker::Burst& burst, const worker::Ready& ready,
                       Nanoseconds whole);

// Between two orders every process of the side is stopped (SIGSTOP): threads that would keep spinning after a burst, as
// those of OpenMP and OpenBLAS do by default, freeze until the side's next turn, and then continue as in a loop without
// pauses. The implementation's own settings are unchanged. Kernels that it has launched on a GPU are not stopped.
class SideRun final : public Side {
 public:
  SideRun(const PairedSide& side, const PairedOptions& options, const Observer& observer, Watch& watch,
          Clock::time_point deadline);

  bool start() override;
  bool prepare() override;
  std::optional<double> burst() override;
  bool finish() override;
  void abandon(const std::string& reason) override;
  bool stands_still() const override { return !stopped_ || stopped_->lasts(); }
  void end_as_restless() override;
  bool ended() const override { return ended_; }
  const worker::Ready& ready() const override { return ready_; }
  Nanoseconds cpu_time() const override { return cpu_ ? cpu_->used() : Nanoseconds{}; }
  AttemptResult result(Json facts) override;

 private:
  bool hear(std::string_view wanted, const std::function<void(const Json&)>& use);
  bool take(const std::string& text, std::string_view wanted, const std::function<void(const Json&)>& use);
  void pass_on_progress();
  void bury();
  bool may_stay() const;
  void set_aside();
  void end();

  const PairedSide& side_;
  const PairedOptions& options_;
  std::vector<std::string> command_;
  const Observer& observer_;
  Watch& watch_;
  Clock::time_point deadline_, began_;
  OomWitness witness_;
  std::unique_ptr<WorkerProcess> worker_;  // null: it waits for the next launch
  bool fresh_ = false;                     // what is judged is started for this launch alone
  bool starts_ = false;                    // and waits for its turn once it is there
  std::optional<Standstill> stopped_;      // since its last answer
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
