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

// Between two orders every process of the side stands still (SIGSTOP): threads that would go on spinning after a burst,
// as those of OpenMP and OpenBLAS do by default, wait for the side's next turn instead, and are found then as a loop
// without pauses would find them. Nothing about the implementation's own settings is changed.
class SideRun {
 public:
  SideRun(const PairedSide& side, const PairedOptions& options, const Observer& observer, Watch& watch,
          Clock::time_point deadline);

  // Each waits for the side's answer. False (nothing): the side has ended or was ended; result() says how.
  bool prepare();
  std::optional<double> burst();  // seconds per call
  bool finish();

  // The other side's doing: this one is killed, `aborted` for this reason, unless it has ended.
  void abandon(const std::string& reason);

  bool ended() const { return ended_; }
  const worker::Ready& ready() const { return ready_; }
  Nanoseconds cpu_time() const { return cpu_ ? cpu_->used() : Nanoseconds{}; }  // since ready, of all its processes
  // Once it has ended. `facts` (an object) is stored as its fact "paired".
  AttemptResult result(Json facts);

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
