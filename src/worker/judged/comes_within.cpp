#include "worker/judged/comes_within.hpp"

#include <thread>

namespace syslab::worker {

bool comes_within(std::chrono::milliseconds limit, const std::function<bool()>& has_come) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBrief{1};
  const auto begin = Clock::now(), end = begin + limit;
  while (Clock::now() < end) {
    if (has_come()) return true;
    Clock::now() < begin + kBrief ? std::this_thread::yield() : std::this_thread::sleep_for(kBrief);
  }
  return has_come();
}

}  // namespace syslab::worker
