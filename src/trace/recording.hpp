// One recording of this thread's work on a device: ranges, and the kernels that belong to them.
//
//   Recording recording(place);
//   work();                                  // ranges of device/cuda/nvtx.hpp, on streams of `place`
//   const Trace trace = recording.finish();  // waits
//   kernel_stats(attribute(trace));
#pragma once

#include <memory>
#include <optional>

#include "trace/attribution.hpp"
#include "trace/cupti.hpp"
#include "trace/event_tap.hpp"

namespace syslab::trace {

enum class Source { best, events };

class Recording {
 public:
  // On a GPU by CUPTI, or by events where that cannot be had (Trace::why says why) or is not wanted. On the CPU the
  // ranges' own times serve.
  explicit Recording(device::Place place, Source source = Source::best);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // How many spans there are: `first` of attribute() for what comes from now on.
  std::size_t spans() const { return recorder_->spans().size(); }

  Trace finish();  // once; nothing is recorded after it

 private:
  device::Place place_;
  std::string why_;
  std::unique_ptr<CuptiSession> cupti_;
  std::optional<EventTap> events_;
  std::optional<Recorder> recorder_;
  std::optional<device::Listening> listening_;
};

}  // namespace syslab::trace
