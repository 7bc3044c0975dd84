// Training steps that are timed phase by phase: marks in the stream that computes, and what they tell of every step.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/event.hpp"
#include "experiments/naive_ddp_benchmarking/rank_training.hpp"
#include "worker/rank_case.hpp"

namespace syslab {

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

// A stretch of a step, in seconds from its beginning.
void emit_span(worker::CaseContext& context, std::string track, std::string name, std::string category, double begin,
               double end);

// Steps of parallel::DataParallelWorkload or parallel::FsdpWorkload, of each of which something is kept.
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
  std::span<const Kept> last(std::size_t count) const { return worker::last_of(kept_, count); }

 private:
  std::shared_ptr<Workload> workload_;
  PhaseMarks marks_;
  Look look_;
  std::vector<Kept> kept_;
};

template <typename Workload, typename Kept>
worker::RankSeries phased_series(const std::shared_ptr<PhasedSteps<Workload, Kept>>& steps) {
  worker::RankSeries series = training_steps(steps->workload());
  series.refresh = [steps, refresh = series.refresh] {
    steps->keep();
    refresh();
  };
  series.call = [steps] { steps->step(); };
  return series;
}

}  // namespace syslab
