// Marks in a stream: to wait for, and to time between. On the CPU, where work is done when its call returns, an event
// holds the time at which it was recorded.
#pragma once

#include "core/units.hpp"
#include "device/device.hpp"

namespace syslab::device {

enum class Timing { no, yes };

class Event {
 public:
  explicit Event(Place place, Timing timing = Timing::no);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  void record(Stream stream);       // again: the earlier mark is forgotten
  bool done() const;                // true when never recorded
  void synchronize() const;         // the host waits
  void before(Stream later) const;  // what is queued on `later` from now on waits for this mark; the host does not

  // Error(usage) unless both were made with Timing::yes and recorded. CUDA resolves about half a microsecond.
  friend Nanoseconds elapsed(const Event& begin, const Event& end);

 private:
  Place place_;
  void* handle_ = nullptr;
  bool timed_ = false, recorded_ = false;
  Nanoseconds at_{};  // on the CPU
};

Nanoseconds elapsed(const Event& begin, const Event& end);

}  // namespace syslab::device
