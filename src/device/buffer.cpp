#include "device/buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace syslab::device {

namespace {

Nanoseconds monotonic_now() {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

void* allocate(std::size_t bytes, std::string_view tag) {
  if (bytes == 0) return nullptr;
  void* data = nullptr;
  if (bytes <= std::numeric_limits<std::size_t>::max() - kAlignment) {
    const std::size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;  // aligned_alloc wants a multiple
    data = std::aligned_alloc(kAlignment, padded);
  }
  if (data == nullptr) {
    throw Error(ErrorKind::oom,
                fmt::format("could not allocate {} B for '{}' on the host ({} B are held by buffers already); "
                            "take a smaller problem or raise the memory limit",
                            bytes, tag, MemoryLog::global().live_bytes()),
                "aligned_alloc");
  }
  return data;
}

}  // namespace

MemoryLog::MemoryLog() : origin_(monotonic_now()) {}

void MemoryLog::record(std::int64_t delta, std::string_view tag) {
  const std::lock_guard lock(mutex_);
  live_ += delta;
  peak_ = std::max(peak_, live_);
  if (events_.size() < kMostEvents) {
    events_.push_back({monotonic_now() - origin_, delta, std::string(tag)});
  } else {
    ++dropped_events_;
  }
}

std::int64_t MemoryLog::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

std::int64_t MemoryLog::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void MemoryLog::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = live_;
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
}

MemoryLog& MemoryLog::global() {
  // Never destroyed: buffers of static storage duration may release after main.
  static auto* log = new MemoryLog;
  return *log;
}

Buffer::Buffer(std::size_t bytes, std::string_view tag, MemoryLog& log)
    : data_(allocate(bytes, tag)), bytes_(bytes), tag_(tag), log_(&log) {
  try {
    if (bytes_ != 0) log_->record(static_cast<std::int64_t>(bytes_), tag_);
  } catch (...) {
    std::free(data_);
    throw;
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      tag_(std::move(other.tag_)),
      log_(other.log_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    tag_ = std::move(other.tag_);
    log_ = other.log_;
  }
  return *this;
}

Buffer::~Buffer() { release(); }

void Buffer::release() noexcept {
  if (data_ == nullptr) return;
  std::free(data_);
  data_ = nullptr;
  try {
    log_->record(-static_cast<std::int64_t>(std::exchange(bytes_, 0)), tag_);
  } catch (...) {  // no memory for one log entry: the memory itself is back, which matters more
  }
}

}  // namespace syslab::device
