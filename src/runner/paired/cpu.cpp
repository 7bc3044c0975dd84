#include "runner/paired/cpu.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>

#include "core/process/process_stat.hpp"

namespace syslab::runner {

GroupCpuClock::GroupCpuClock(pid_t group) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool is_process = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    const auto stat = is_process ? process_stat(std::stoi(name)) : std::nullopt;
    clockid_t clock{};
    if (stat && stat->group == group && ::clock_getcpuclockid(std::stoi(name), &clock) == 0) {
      clocks_.push_back(clock);
    }
  }
}

Nanoseconds GroupCpuClock::used() const {
  Nanoseconds total{};
  for (const clockid_t clock : clocks_) {
    struct timespec time {};
    if (::clock_gettime(clock, &time) == 0) {
      total += std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
    }
  }
  return total;
}

}  // namespace syslab::runner
