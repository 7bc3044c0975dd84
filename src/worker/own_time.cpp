#include "worker/own_time.hpp"

#include <algorithm>
#include <utility>

#include "core/process_stat.hpp"

namespace syslab::worker {

OwnTime::OwnTime(std::function<pid_t()> asked)
    : asked_(std::move(asked)), own_before_(waited_for_processor(0).value_or(Nanoseconds{})), pid_(asked_()) {
  if (pid_ != 0) last_ = waited_for_processor(pid_).value_or(Nanoseconds{});
}

Nanoseconds OwnTime::spent() {
  const Nanoseconds passed = std::chrono::steady_clock::now() - began_;
  const Nanoseconds own = waited_for_processor(0).value_or(own_before_) - own_before_;
  return std::max(Nanoseconds{}, passed - own - waited_of_asked());
}

Nanoseconds OwnTime::waited_of_asked() {
  if (const pid_t now = asked_(); now != pid_) {  // another was started in the meantime
    pid_ = now;
    last_ = {};
  }
  if (pid_ == 0) return waited_;
  const Nanoseconds all = waited_for_processor(pid_).value_or(last_);
  waited_ += std::max(Nanoseconds{}, all - last_);
  last_ = all;
  return waited_;
}

}  // namespace syslab::worker
