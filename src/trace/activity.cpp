#include "trace/activity.hpp"

#include <algorithm>

namespace syslab::trace {

std::string_view to_string(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::kernel:
      return "kernel";
    case ActivityKind::copy:
      return "copy";
    case ActivityKind::fill:
      return "fill";
  }
  return "";
}

std::vector<Activity> host_activities(const std::vector<Span>& spans) {
  using device::RangeKind;
  std::vector<Nanoseconds> inside(spans.size(), Nanoseconds{});  // of a kernel span: what calls within it took
  for (std::size_t i = spans.size(); i-- > 0;) {
    if (spans[i].kind != RangeKind::kernel) continue;
    for (auto outer = spans[i].parent; outer; outer = spans[*outer].parent) {
      if (spans[*outer].kind != RangeKind::kernel) continue;
      inside[*outer] += spans[i].end - spans[i].begin;
      break;
    }
  }
  std::vector<Activity> made;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    if (span.kind != RangeKind::kernel || span.on_device) continue;
    // Remaining time goes at the end: its length is known, but not its place between the calls.
    made.push_back({.kind = ActivityKind::kernel,
                    .name = span.kernel,
                    .track = kHostTrack,
                    .begin = std::min(span.begin + inside[i], span.end),  // events' times are rounded
                    .end = span.end,
                    .span = i});
  }
  return made;
}

}  // namespace syslab::trace
