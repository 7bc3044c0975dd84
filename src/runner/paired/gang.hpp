// One side of a paired launch with several ranks per case: every order goes to all ranks, and the slowest rank's time
// counts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/paired/cpu.hpp"
#include "runner/paired/side.hpp"
#include "runner/ranks/gang.hpp"

namespace syslab::runner {

// Between two orders the ranks wait for the next and are not stopped: their monitoring threads would take a stop for
// silence of the others. Their processor time meanwhile is recorded as for any side.
class GangSide final : public Side {
 public:
  GangSide(const PairedSide& side, const PairedOptions& options, const Observer& observer, Watch& watch,
           Clock::time_point deadline);

  bool prepare() override;
  std::optional<double> burst() override;
  bool finish() override;
  void abandon(const std::string& reason) override;
  bool ended() const override { return gang_->over(); }
  const worker::Ready& ready() const override { return ready_; }
  Nanoseconds cpu_time() const override;
  AttemptResult result(Json facts) override;

 private:
  WorkerProcess::Command command() const;
  bool hear(std::string_view wanted, const Gang::Use& use);

  const PairedSide& side_;
  const PairedOptions& options_;
  const Observer& observer_;
  Watch& watch_;
  Clock::time_point deadline_, began_;
  OomWitness witness_;
  std::string started_at_, abandoned_;  // why
  std::unique_ptr<Gang> gang_;
  std::vector<GroupCpuClock> cpu_;  // since ready, of every rank's processes
  worker::Ready ready_;
};

}  // namespace syslab::runner
