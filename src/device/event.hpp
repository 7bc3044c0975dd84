// Marks in a stream, to wait for and to measure time between. On the CPU's plain stream, where work is done when its
// call returns, an event is done at once and holds the time of recording.
#pragma once

#include <memory>

#include "core/text/units.hpp"
#include "device/device.hpp"

namespace syslab::device {

class HostMark;  // device/host_queue.hpp

enum class Timing { no, yes };

class Event {
 public:
  explicit Event(Place place, Timing timing = Timing::no);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  void record(Stream stream);  // replaces an earlier mark
  bool done() const;           // true if never recorded
  void synchronize() const;    // the host waits
  // Work queued on `later` from now on waits for this mark. The host waits only if `later` is the CPU's plain stream or
  // a stream of another device.
  void before(Stream later) const;

  // Error(usage) unless both were made with Timing::yes, recorded, and done. CUDA resolves about half a microsecond.
  friend Nanoseconds elapsed(const Event& begin, const Event& end);

 private:
  Nanoseconds time() const;  // on the CPU

  Place place_;
  void* handle_ = nullptr;
  bool timed_ = false, recorded_ = false;
  Nanoseconds at_{};                // on the CPU's plain stream
  std::shared_ptr<HostMark> mark_;  // on a queue of the CPU; queued waits keep the mark they were queued for
};

Nanoseconds elapsed(const Event& begin, const Event& end);

}  // namespace syslab::device
