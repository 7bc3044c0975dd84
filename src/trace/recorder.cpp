#include "trace/recorder.hpp"

#include <chrono>
#include <new>

#include "core/error.hpp"

namespace syslab::trace {

Nanoseconds host_now() {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

void Recorder::begin(const char* name, device::RangeKind kind, device::Stream stream,
                     std::string_view kernel) noexcept {
  std::size_t index = kLost;
  try {
    open_.reserve(open_.size() + 1);
    if (spans_.size() < kMostSpans) {
      spans_.push_back({.name = name,
                        .kind = kind,
                        .kernel = std::string(kernel),
                        .parent = innermost(),
                        .on_device = stream.kind == device::Kind::cuda});
      index = spans_.size() - 1;
    }
    open_.push_back(index);
  } catch (const std::bad_alloc&) {
    // Out of memory. The end of this range would be taken for its parent's, so recording stops.
    tap_ = nullptr;
    open_.clear();
    index = kLost;
  }
  if (index == kLost) {
    ++lost_;
    return;
  }
  if (tap_ != nullptr) tap_->opened(index, kind, stream);
  spans_[index].begin = spans_[index].end = host_now();  // last: what came before is no part of it
}

void Recorder::end() noexcept {
  if (open_.empty()) return;
  const std::size_t index = open_.back();
  open_.pop_back();
  if (index == kLost) return;
  spans_[index].end = host_now();
  if (tap_ != nullptr) tap_->closed(index);
}

std::optional<std::size_t> Recorder::innermost() const {
  for (auto index = open_.rbegin(); index != open_.rend(); ++index) {
    if (*index != kLost) return *index;
  }
  return std::nullopt;
}

void Recorder::clear() {
  if (!open_.empty()) throw Error(ErrorKind::internal, "spans cannot be forgotten while one of them is open");
  spans_.clear();
  lost_ = 0;
}

}  // namespace syslab::trace
