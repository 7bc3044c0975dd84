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

#include "device/event.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {

// When the phases of a step ended, in seconds from its beginning.
struct PhaseEnds {
  double forward = 0, backward = 0, update = 0;
};

class PhaseMarks {
 public:
  explicit PhaseMarks(device::Stream stream);

  template <typename Workload>
  void step(Workload& workload) {
    mark(0);
    workload.forward();
    mark(1);
    workload.backward();
    mark(2);
    workload.update();
    mark(3);
    stepped_ = true;
  }
  // Of the last step, which has been waited for; nothing before the first.
  std::optional<PhaseEnds> ends() const;

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
  using Look = Kept (*)(Workload& workload, const PhaseEnds& ends);  // at a step that has been waited for

  PhasedSteps(std::shared_ptr<Workload> workload, device::Stream stream, Look look)
      : workload_(std::move(workload)), marks_(stream), look_(look) {}

  const std::shared_ptr<Workload>& workload() const { return workload_; }
  void step() { marks_.step(*workload_); }
  // The last step, before the next one or the end.
  void keep() {
    if (const std::optional<PhaseEnds> ends = marks_.ends()) kept_.push_back(look_(*workload_, *ends));
  }
  const std::vector<Kept>& kept() const { return kept_; }

 private:
  std::shared_ptr<Workload> workload_;
  PhaseMarks marks_;
  Look look_;
  std::vector<Kept> kept_;
};

}  // namespace syslab::parallel
