#include "device/memory_log.hpp"

#include <algorithm>
#include <map>

namespace syslab::device {

namespace {

Nanoseconds monotonic_now() {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

std::string_view to_string(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::other:
      return "other";
    case MemoryCategory::input:
      return "input";
    case MemoryCategory::output:
      return "output";
    case MemoryCategory::parameter:
      return "parameter";
    case MemoryCategory::gradient:
      return "gradient";
    case MemoryCategory::optimizer:
      return "optimizer";
    case MemoryCategory::activation:
      return "activation";
    case MemoryCategory::workspace:
      return "workspace";
    case MemoryCategory::library:
      return "library";
  }
  return "";
}

MemoryLog::MemoryLog() : origin_(monotonic_now()) {}

void MemoryLog::record(std::int64_t delta, std::string_view tag, MemoryCategory category) {
  const std::lock_guard lock(mutex_);
  (category == MemoryCategory::library ? library_ : live_) += delta;
  peak_ = std::max(peak_, live_);
  if (events_.size() < kMostEvents) {
    events_.push_back({monotonic_now() - origin_, delta, std::string(tag), category});
  } else {
    ++dropped_events_;
  }
}

void MemoryLog::record_reserved(std::int64_t delta) {
  const std::lock_guard lock(mutex_);
  reserved_ += delta;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

Nanoseconds MemoryLog::now() const { return monotonic_now() - origin_; }

std::int64_t MemoryLog::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

std::int64_t MemoryLog::library_bytes() const {
  const std::lock_guard lock(mutex_);
  return library_;
}

std::int64_t MemoryLog::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

std::int64_t MemoryLog::reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return reserved_;
}

std::int64_t MemoryLog::peak_reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_reserved_;
}

void MemoryLog::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = live_;
  peak_reserved_ = reserved_;
}

std::vector<MemoryEvent> MemoryLog::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::int64_t MemoryLog::dropped_events() const {
  const std::lock_guard lock(mutex_);
  return dropped_events_;
}

void MemoryLog::clear() {
  const std::lock_guard lock(mutex_);
  dropped_events_ = 0;
  events_.clear();  // live bytes stay: their owners will release them
  peak_ = live_;
  peak_reserved_ = reserved_;
}

// Logs are never destroyed: buffers of static storage duration may release after main.
MemoryLog& MemoryLog::global() {
  static auto* log = new MemoryLog;
  return *log;
}

MemoryLog& MemoryLog::of(Place place) {
  if (place.kind == Kind::cpu) return global();
  static auto* mutex = new std::mutex;
  static auto* logs = new std::map<int, MemoryLog>;
  const std::lock_guard lock(*mutex);
  return (*logs)[place.index];
}

}  // namespace syslab::device
