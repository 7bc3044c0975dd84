// Times of operators on a GPU by events in their streams: what is left where CUPTI cannot be had. An event stands
// before and after each call of an operator, so that the call is the smallest thing that is told, not the kernel; each
// costs the stream about a microsecond.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device/event.hpp"
#include "trace/activity.hpp"

namespace syslab::trace {

class EventTap final : public SpanTap {
 public:
  explicit EventTap(device::Place place);  // waits for the device: its clock and the host's are read together

  void opened(std::size_t span, device::RangeKind kind, device::Stream stream) noexcept override;
  void closed(std::size_t span) noexcept override;

  // Adds one activity a call, as host_activities() does. Waits for the device.
  void finish(Trace& trace);

 private:
  struct Pair {
    device::Stream stream;
    device::Event begin, end;
  };
  device::Place place_;
  device::Event origin_;
  Nanoseconds origin_on_host_{};
  std::map<std::size_t, Pair> pairs_;  // by span
  std::int64_t lost_ = 0;
};

}  // namespace syslab::trace
