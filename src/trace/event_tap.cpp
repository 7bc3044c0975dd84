#include "trace/event_tap.hpp"

#include <utility>

#include "device/stream.hpp"

namespace syslab::trace {

EventTap::EventTap(device::Place place) : place_(place), origin_(place, device::Timing::yes) {
  const device::OwnedStream stream(place);
  device::synchronize(place);
  origin_.record(stream);
  origin_.synchronize();
  origin_on_host_ = host_now();
}

void EventTap::opened(std::size_t span, device::RangeKind kind, device::Stream stream) noexcept {
  if (kind != device::RangeKind::kernel || stream.kind != place_.kind) return;
  try {
    // Events of a capture are nodes of the graph, and hold no time of their own.
    if (device::is_capturing(stream)) return;
    Pair pair{stream, device::Event(place_, device::Timing::yes), device::Event(place_, device::Timing::yes)};
    pair.begin.record(stream);
    pairs_.emplace(span, std::move(pair));
  } catch (...) {
    ++lost_;
  }
}

void EventTap::closed(std::size_t span) noexcept {
  const auto found = pairs_.find(span);
  if (found == pairs_.end()) return;
  try {
    found->second.end.record(found->second.stream);
  } catch (...) {
    pairs_.erase(found);
    ++lost_;
  }
}

void EventTap::finish(Trace& trace) {
  device::synchronize(place_);
  std::vector<Span> timed = trace.spans;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const auto pair = pairs_.find(i);
    if (pair == pairs_.end()) {
      if (timed[i].kind == device::RangeKind::kernel) timed[i].kind = device::RangeKind::scope;  // has no times
      continue;
    }
    timed[i].begin = origin_on_host_ + elapsed(origin_, pair->second.begin);
    timed[i].end = origin_on_host_ + elapsed(origin_, pair->second.end);
    timed[i].on_device = false;  // its times are the device's now
  }
  std::vector<Activity> activities = host_activities(timed);
  for (Activity& activity : activities) activity.track = "stream, by events";
  trace.activities = std::move(activities);
  trace.source = "events";
  trace.lost += lost_;
}

}  // namespace syslab::trace
