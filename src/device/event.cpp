#include "device/event.hpp"

#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/host_queue.hpp"

namespace syslab::device {

Event::Event(Place place, Timing timing) : place_(place), timed_(timing == Timing::yes) {
  if (place.kind == Kind::cpu) return;
  const CurrentDevice current(place);
  handle_ = runtime::create_event(timed_);
}

Event::Event(Event&& other) noexcept
    : place_(other.place_),
      handle_(std::exchange(other.handle_, nullptr)),
      timed_(other.timed_),
      recorded_(other.recorded_),
      at_(other.at_),
      mark_(std::move(other.mark_)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(handle_, other.handle_);
  std::swap(timed_, other.timed_);
  std::swap(recorded_, other.recorded_);
  std::swap(at_, other.at_);
  std::swap(mark_, other.mark_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) runtime::destroy_event(handle_);
}

void Event::record(Stream stream) {
  if (stream.kind != place_.kind) {
    throw Error(ErrorKind::usage, "an event of " + to_string(place_) + " cannot mark a stream of another device");
  }
  if (place_.kind == Kind::cuda) {
    runtime::record_event(handle_, stream.handle);
  } else if (is_queue(stream)) {
    const std::shared_ptr<HostQueue> queue = host_queue(stream);
    mark_ = std::make_shared<HostMark>();
    queue->push_mark(mark_);
  } else {
    mark_ = nullptr;
    at_ = std::chrono::steady_clock::now().time_since_epoch();
  }
  recorded_ = true;
}

bool Event::done() const {
  if (place_.kind == Kind::cpu) return mark_ == nullptr || mark_->done();
  return !recorded_ || runtime::event_done(handle_);
}

void Event::synchronize() const {
  if (mark_ != nullptr) return mark_->wait();
  if (place_.kind == Kind::cuda && recorded_) runtime::synchronize_event(handle_);
}

void Event::before(Stream later) const {
  if (!recorded_) return;
  if (later.kind != place_.kind) return synchronize();
  if (place_.kind == Kind::cuda) return runtime::stream_wait(later.handle, handle_);
  if (mark_ == nullptr) return;
  if (is_queue(later)) return host_queue(later)->push_wait(mark_);
  mark_->wait();
}

Nanoseconds Event::time() const { return mark_ == nullptr ? at_ : mark_->at(); }

Nanoseconds elapsed(const Event& begin, const Event& end) {
  if (!begin.timed_ || !end.timed_ || !begin.recorded_ || !end.recorded_) {
    throw Error(ErrorKind::usage, "no time between two events unless both were made for timing and recorded");
  }
  if (begin.place_.kind == Kind::cpu) {
    if (!begin.done() || !end.done()) {
      throw Error(ErrorKind::usage, "no time between two events of which one is not done: synchronize with both first");
    }
    return end.time() - begin.time();
  }
  constexpr double kNanosecondsPerMillisecond = 1e6;
  return Nanoseconds(
      std::llround(runtime::milliseconds_between(begin.handle_, end.handle_) * kNanosecondsPerMillisecond));
}

}  // namespace syslab::device
