#include "worker/cases/own_time.hpp"

#include <algorithm>
#include <utility>

namespace syslab::worker {

OwnTime::OwnTime(std::function<pid_t()> asked)
    : asked_(std::move(asked)), own_before_(processor_times(0).value_or(ProcessorTimes{})), pid_(asked_()) {
  if (pid_ != 0) last_ = processor_times(pid_).value_or(ProcessorTimes{});
}

Nanoseconds OwnTime::spent() {
  const Nanoseconds passed = std::chrono::steady_clock::now() - began_;
  const ProcessorTimes own = processor_times(0).value_or(own_before_);
  look_at_asked();
  const Nanoseconds waited = own.waited - own_before_.waited + of_asked_.waited;
  const Nanoseconds ran = own.ran - own_before_.ran + of_asked_.ran;
  return std::max(std::min(ran, passed), passed - waited);
}

void OwnTime::look_at_asked() {
  if (const pid_t now = asked_(); now != pid_) {  // another was started in the meantime
    pid_ = now;
    last_ = {};
  }
  if (pid_ == 0) return;
  const ProcessorTimes all = processor_times(pid_).value_or(last_);
  of_asked_.ran += std::max(Nanoseconds{}, all.ran - last_.ran);
  of_asked_.waited += std::max(Nanoseconds{}, all.waited - last_.waited);
  last_ = all;
}

}  // namespace syslab::worker
