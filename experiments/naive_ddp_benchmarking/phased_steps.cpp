#include "experiments/naive_ddp_benchmarking/phased_steps.hpp"

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "parallel/events.hpp"

namespace syslab {

PhaseMarks::PhaseMarks(device::Stream stream)
    : stream_(stream), marks_(parallel::events(4, stream, device::Timing::yes)) {}

void PhaseMarks::mark(std::size_t index) { marks_[index].record(stream_); }

std::optional<PhaseEnds> PhaseMarks::ends() const {
  if (!stepped_) return std::nullopt;
  const auto since_begin = [this](std::size_t mark) { return Seconds(elapsed(marks_[0], marks_[mark])).count(); };
  return PhaseEnds{.forward = since_begin(1), .backward = since_begin(2), .update = since_begin(3)};
}

void emit_span(worker::CaseContext& context, std::string track, std::string name, std::string category, double begin,
               double end) {
  context.emit(worker::SpanRecord{.track = std::move(track),
                                  .name = std::move(name),
                                  .category = std::move(category),
                                  .start_ns = std::llround(1e9 * begin),
                                  .end_ns = std::llround(1e9 * std::max(begin, end))});
}

}  // namespace syslab
