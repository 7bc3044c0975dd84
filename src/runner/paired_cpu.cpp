#include "runner/paired_cpu.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace syslab::runner {
namespace {

// The fifth field of /proc/PID/stat; the second, a name in parentheses, may hold anything. -1: the process is gone.
pid_t group_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream rest(text.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0, group = -1;
  rest >> state >> parent >> group;
  return rest ? group : -1;
}

}  // namespace

GroupCpuClock::GroupCpuClock(pid_t group) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool is_process = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    clockid_t clock{};
    if (is_process && group_of(at->path()) == group && ::clock_getcpuclockid(std::stoi(name), &clock) == 0) {
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
