#include "runner/standstill.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/process/process.hpp"
#include "core/process/process_stat.hpp"

namespace syslab::runner {
namespace {

using StopClock = std::chrono::steady_clock;

// A thread counts as stopped a moment before it leaves the processor; on a busy machine others may run in between.
constexpr Nanoseconds kGoingToSleep = std::chrono::microseconds(200);

bool is_gone(int error) { return error == ENOENT || error == ESRCH; }

// Hundreds of such files are read between two bursts of 2 ms: streams would take longer than the bursts. Returns false
// if the file is there and cannot be read.
bool read_whole(const std::string& path, std::string& text) {
  text.clear();
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return is_gone(errno);
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = ::read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return got == 0 || is_gone(errno);
}

// Nothing: the folder cannot be read.
std::optional<std::vector<pid_t>> numbers_in(const std::string& folder) {
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return std::nullopt;
  std::vector<pid_t> found;
  while (const dirent* const entry = ::readdir(open)) {
    const std::string_view name(entry->d_name);
    pid_t number = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong == std::errc() && rest == name.data() + name.size()) found.push_back(number);
  }
  ::closedir(open);
  return found;
}

void append_children(const std::string& all, std::vector<pid_t>& to) {
  const char* at = all.data();
  const char* const end = at + all.size();
  while (at < end) {
    pid_t child = 0;
    const auto [rest, wrong] = std::from_chars(at, end, child);
    if (wrong == std::errc()) to.push_back(child);
    at = rest + 1;
  }
}

bool kernel_lists_children() {
  static const bool lists = ::access("/proc/thread-self/children", R_OK) == 0;
  return lists;
}

// What one look at a group found.
struct Look {
  std::vector<pid_t> processes, threads;
  bool runs = false;     // some thread is neither stopped nor gone
  bool blocked = false;  // some thread is in a system call that cannot be interrupted
  bool whole = true;     // nothing is there that could not be read

  // A process that /proc does not show (hidepid) is one all the same, and so is one for which no descriptor is left.
  void could_not_list(pid_t process, pid_t group) {
    const pid_t of = ::getpgid(process);
    if (of == group || (of >= 0 && kernel_lists_children())) whole = false;
  }

  // In this order: what is stopped starts nothing, so that whoever is seen stopped has the children that are read next.
  void take(pid_t process, pid_t group) {
    const std::string folder = "/proc/" + std::to_string(process) + "/task/";
    std::vector<pid_t> children;
    bool is_member = false;
    const auto numbers = numbers_in(folder);
    if (!numbers) return could_not_list(process, group);
    std::string text;
    for (const pid_t number : *numbers) {
      const std::string of_thread = folder + std::to_string(number);
      whole = read_whole(of_thread + "/stat", text) && whole;
      const std::optional<ProcessStat> thread = stat_from(text);  // nothing: it is gone
      if (!thread) continue;
      threads.push_back(number);
      is_member = is_member || thread->group == group;
      const bool stands = std::strchr("TtZXx", thread->state) != nullptr;
      if (thread->group == group && thread->state == 'D') blocked = true;
      if (thread->group == group && !stands && thread->state != 'D') runs = true;
      if (!kernel_lists_children()) continue;
      whole = read_whole(of_thread + "/children", text) && whole;
      append_children(text, children);
    }
    if (is_member || kernel_lists_children()) processes.push_back(process);
    for (const pid_t child : children) take(child, group);
  }
};

Look look_at(pid_t leader) {
  Look look;
  if (kernel_lists_children()) {
    look.take(leader, leader);
  } else {
    for (const pid_t process : numbers_in("/proc").value_or(std::vector<pid_t>())) look.take(process, leader);
  }
  std::ranges::sort(look.threads);
  // Its first thread is listed until somebody has waited for its end.
  if (!std::ranges::binary_search(look.threads, leader)) look.whole = false;
  return look;
}

}  // namespace

// Twice the same: a thread that was started while others were looked at is in the second look.
Standstill::Standstill(pid_t leader, std::chrono::milliseconds limit) {
  if (leader <= 0) return;
  const auto deadline = StopClock::now() + limit;
  std::vector<pid_t> before, processes;
  std::chrono::microseconds pause{20};
  while (true) {
    Look look = look_at(leader);
    const bool late = StopClock::now() >= deadline;
    // A parent in vfork() waits like this for a child that is stopped, and uses no processor; lasts() sees the others.
    const bool stands = look.whole && !look.runs && (!look.blocked || late);
    if ((stands && look.threads == before) || late) {
      reached_ = stands;
      processes = std::move(look.processes);
      break;
    }
    before = stands ? std::move(look.threads) : std::vector<pid_t>();
    if (stands) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(1000));
  }
  bool complete = true;
  for (const pid_t process : processes) {
    clockid_t clock{};
    if (::clock_getcpuclockid(process, &clock) != 0) {
      complete = false;
      continue;
    }
    clocks_.push_back(clock);
  }
  at_stop_ = used(complete);
  reached_ = reached_ && complete;
}

bool Standstill::lasts() const {
  bool complete = true;
  const Nanoseconds now = used(complete);
  return reached_ && complete && now - at_stop_ <= kGoingToSleep;
}

// Not complete: one that was there has ended, for which it had to run.
Nanoseconds Standstill::used(bool& complete) const {
  Nanoseconds total{};
  for (const clockid_t clock : clocks_) {
    timespec time{};
    if (::clock_gettime(clock, &time) != 0) {
      complete = false;
      continue;
    }
    total += std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
  }
  return total;
}

}  // namespace syslab::runner
