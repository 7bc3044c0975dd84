// Training steps that are timed phase by phase: marks in the stream that computes, and what is kept of every step.
//
//   PhasedSteps<FsdpWorkload, Kept> steps(workload, stream, look);
//   steps.keep(), workload->refresh(), steps.step();   // for each step: what the one before has left, then the next
//   steps.keep(), steps.kept();                        // and of the last
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "contract/measured_step.hpp"
#include "device/event.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {

class PhaseMarks {
 public:
  explicit PhaseMarks(device::Stream stream);

  void step(StepWorkload& workload);
  // Of the last step, which has been waited for; nothing before the first.
  std::optional<PhaseEnds> ends() const;
  const device::Event& begin() const { return marks_.front(); }  // of the last step

 private:
  void mark(std::size_t index);

  device::Stream stream_;
  std::vector<device::Event> marks_;  // begin, and the ends of forward, backward and update
  bool stepped_ = false;
};

// Steps of a DataParallelWorkload or FsdpWorkload, of each of which something is kept.
template <typename Workload, typename Kept>
class PhasedSteps {
 public:
  // At a step that has been waited for; `ends` count from `begin`.
  using Look = Kept (*)(Workload& workload, const PhaseEnds& ends, const device::Event& begin);

  PhasedSteps(std::shared_ptr<Workload> workload, device::Stream stream, Look look)
      : workload_(std::move(workload)), marks_(stream), look_(look) {}

  const std::shared_ptr<Workload>& workload() const { return workload_; }
  void step() { marks_.step(*workload_); }
  // The last step, before the next one or the end.
  void keep() {
    if (const std::optional<PhaseEnds> ends = marks_.ends()) kept_.push_back(look_(*workload_, *ends, marks_.begin()));
  }
  const std::vector<Kept>& kept() const { return kept_; }

 private:
  std::shared_ptr<Workload> workload_;
  PhaseMarks marks_;
  Look look_;
  std::vector<Kept> kept_;
};

}  // namespace syslab::parallel
