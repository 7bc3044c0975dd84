// Records every allocation and release, so that peaks are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/units.hpp"
#include "device/device.hpp"

namespace syslab::device {

// What memory is for: the colours of a timeline. `library`: memory that a library (cuBLAS) keeps for a stream from its
// first call on; it belongs to no caller, so sums and peaks of live bytes exclude it.
enum class MemoryCategory { other, input, output, parameter, gradient, optimizer, activation, workspace, library };

std::string_view to_string(MemoryCategory category);  // "activation"

// One allocation (delta > 0) or release (delta < 0).
struct MemoryEvent {
  Nanoseconds at{};        // since the log began, monotonic
  std::int64_t delta = 0;  // bytes asked for, without alignment padding
  std::string tag;         // what it is: "scores", "workspace"
  MemoryCategory category = MemoryCategory::other;
};

// Thread-safe account of live bytes. Peaks are always exact; only the first kMostEvents events are kept, since a timed
// loop produces millions of identical ones.
class MemoryLog {
 public:
  MemoryLog();
  void record(std::int64_t delta, std::string_view tag, MemoryCategory category = MemoryCategory::other);
  // Memory that an allocator took from the system (or returned) to serve requests: no events, only sums.
  void record_reserved(std::int64_t delta);

  Nanoseconds now() const;  // the time that an event would have: since the log began
  std::int64_t live_bytes() const;
  std::int64_t library_bytes() const;   // live too, not included in the sum above
  std::int64_t peak_bytes() const;      // since construction or the last reset_peak
  std::int64_t reserved_bytes() const;  // for tests; 0 on the host, which has no allocator in between
  std::int64_t peak_reserved_bytes() const;
  void reset_peak();  // sets the peaks to the bytes live and reserved now
  static constexpr std::size_t kMostEvents = 1 << 16;
  std::vector<MemoryEvent> events() const;
  std::int64_t dropped_events() const;  // those beyond kMostEvents since construction or clear()
  void clear();

  static MemoryLog& global();         // of host memory: what Buffer uses there unless told otherwise
  static MemoryLog& of(Place place);  // of a device's memory; of the CPU: global()

 private:
  mutable std::mutex mutex_;
  Nanoseconds origin_{};
  std::int64_t live_ = 0, peak_ = 0, library_ = 0, reserved_ = 0, peak_reserved_ = 0;
  std::vector<MemoryEvent> events_;
  std::int64_t dropped_events_ = 0;
};

}  // namespace syslab::device
