// Marks in a stream: to wait for, and to time between. On the CPU's plain stream, where work is done when its call
// returns, an event is done at once and holds the time at which it was recorded.
#pragma once

#include <memory>

#include "core/units.hpp"
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

  void record(Stream stream);  // again: the earlier mark is forgotten
  bool done() const;           // true when never recorded
  void synchronize() const;    // the host waits
  // What is queued on `later` from now on waits for this mark. The host does not, but where `later` is the CPU's plain
  // stream, which is the host's own, or a stream of another device.
  void before(Stream later) const;

  // Error(usage) unless both were made with Timing::yes, recorded, and done. CUDA resolves about half a microsecond.
  friend Nanoseconds elapsed(const Event& begin, const Event& end);

 private:
  Nanoseconds time() const;  // on the CPU

  Place place_;
  void* handle_ = nullptr;
  bool timed_ = false, recorded_ = false;
  Nanoseconds at_{};                // on the CPU's plain stream
  std::shared_ptr<HostMark> mark_;  // on a queue of the CPU; waits that were queued hold the mark they were queued for
};

Nanoseconds elapsed(const Event& begin, const Event& end);

}  // namespace syslab::device
