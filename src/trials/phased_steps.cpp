#include "trials/phased_steps.hpp"

#include "core/text/units.hpp"
#include "parallel/events.hpp"

namespace syslab::parallel {

PhaseMarks::PhaseMarks(device::Stream stream) : stream_(stream), marks_(events(4, stream, device::Timing::yes)) {}

void PhaseMarks::step(StepWorkload& workload) {
  mark(0);
  workload.forward();
  mark(1);
  workload.backward();
  mark(2);
  workload.update();
  mark(3);
  stepped_ = true;
}

void PhaseMarks::mark(std::size_t index) { marks_[index].record(stream_); }

std::optional<PhaseEnds> PhaseMarks::ends() const {
  if (!stepped_) return std::nullopt;
  const auto since_begin = [this](std::size_t mark) { return Seconds(elapsed(marks_[0], marks_[mark])).count(); };
  return PhaseEnds{.forward = since_begin(1), .backward = since_begin(2), .update = since_begin(3)};
}

}  // namespace syslab::parallel
