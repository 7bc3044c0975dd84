// Memory with an owner and an account: every allocation and release is written to a log, from which peaks are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace syslab::device {

// One allocation (delta > 0) or release (delta < 0).
struct MemoryEvent {
  Nanoseconds at{};        // since the log began, monotonic
  std::int64_t delta = 0;  // bytes asked for, without alignment padding
  std::string tag;         // what it is: "scores", "workspace"
};

// Thread-safe account of live bytes. Peaks are exact whatever happens; of events the first kMostEvents are kept, since
// a timed loop makes millions of the same.
class MemoryLog {
 public:
  MemoryLog();
  void record(std::int64_t delta, std::string_view tag);
  std::int64_t live_bytes() const;
  std::int64_t peak_bytes() const;  // since construction or the last reset_peak
  void reset_peak();                // the peak becomes what is live now
  static constexpr std::size_t kMostEvents = 1 << 16;
  std::vector<MemoryEvent> events() const;
  std::int64_t dropped_events() const;  // those beyond kMostEvents since construction or clear()
  void clear();

  static MemoryLog& global();  // what Buffer uses unless told otherwise

 private:
  mutable std::mutex mutex_;
  Nanoseconds origin_{};
  std::int64_t live_ = 0, peak_ = 0;
  std::vector<MemoryEvent> events_;
  std::int64_t dropped_events_ = 0;
};

inline constexpr std::size_t kAlignment = 128;

// Bytes on the host, aligned to kAlignment, uninitialised. Move-only. Throws Error(oom) saying how much was asked.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t bytes, std::string_view tag, MemoryLog& log = MemoryLog::global());
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void release() noexcept;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::string tag_;
  MemoryLog* log_ = nullptr;
};

}  // namespace syslab::device
