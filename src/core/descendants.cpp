#include "core/descendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "core/ids.hpp"

namespace syslab {
namespace {

using namespace std::chrono_literals;
using PatienceClock = std::chrono::steady_clock;

// Not SYSLAB_…: those are stored with a run.
constexpr const char* kMark = "_SYSLAB_KEPT_BY";
constexpr auto kDying = 2s;  // a killed process is gone by then, unless a device holds it

struct Children {
  std::mutex mutex;
  std::set<pid_t> started;  // by Process
  std::set<pid_t> older;    // of the program that became this one by exec
  pid_t keeper = -1;
  int pipe = -1;  // open as long as we live
  bool kept = false;
};

// Never destroyed: processes are still reaped while static objects are.
Children& children() {
  static Children& all = *new Children;
  return all;
}

// The kernel lists children by the thread that has them; orphans go to any.
std::set<pid_t> list_children() {
  std::set<pid_t> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator task("/proc/self/task", failed), end; !failed && task != end;
       task.increment(failed)) {
    std::ifstream list(task->path() / "children");
    for (pid_t pid = 0; list >> pid;) found.insert(pid);
  }
  return found;
}

int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

bool bears(pid_t pid, const std::string& mark) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry == mark) return true;
  }
  return false;
}

// Kills each process with the mark; false when there is none. The descriptor comes before the look: so it is the
// process that was looked at that is killed, and not a later one of the same number.
bool kill_marked(const std::string& mark) {
  bool any = false;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return false;
  while (const dirent* const entry = ::readdir(folder)) {
    const std::string_view name(entry->d_name);
    pid_t pid = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong != std::errc() || rest != name.data() + name.size() || pid == ::getpid()) continue;
    const int descriptor = open_process(pid);
    if (descriptor < 0) continue;
    if (bears(pid, mark)) {
      any = true;
      ::syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0);
    }
    ::close(descriptor);
  }
  ::closedir(folder);
  return any;
}

// The keeper's whole life: until nobody holds the other end of the pipe. No signal that a terminal or a scheduler sends
// to all may end it before its work.
[[noreturn]] void keep(int pipe, const std::string& mark) {
  ::prctl(PR_SET_NAME, "syslab-keeper");
  char none = 0;
  while (::read(pipe, &none, 1) < 0 && errno == EINTR) {
  }
  const auto deadline = PatienceClock::now() + kDying;
  while (kill_marked(mark) && PatienceClock::now() < deadline) std::this_thread::sleep_for(2ms);
  ::_exit(0);
}

// Descriptors of ours must not live on in the keeper: whoever reads our output would wait for its end, too.
void let_go_of_all_but(int kept) {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) ::dup2(nothing, stream);
  const auto one = static_cast<unsigned>(kept);
  if (one > 3) ::syscall(SYS_close_range, 3U, one - 1, 0U);
  ::syscall(SYS_close_range, one + 1, ~0U, 0U);
  if (::chdir("/") != 0) return;
}

// Closing this end of the pipe ends the keeper. Waited for, because not every container's first process reaps what it
// is left.
void end_keeper() {
  Children& all = children();
  ::close(all.pipe);
  while (::waitpid(all.keeper, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void start_keeper(const std::string& mark) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  for (int& end : ends) {
    if (end > STDERR_FILENO) continue;
    const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(end);
    end = moved;
  }
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT}) ::signal(number, SIG_IGN);
    ::setsid();
    let_go_of_all_but(ends[0]);
    keep(ends[0], mark);
  }
  ::close(ends[0]);
  if (keeper < 0) {
    ::close(ends[1]);
    return;
  }
  Children& all = children();
  all.keeper = keeper;
  all.pipe = ends[1];
  std::atexit(end_keeper);
}

}  // namespace

void keep_descendants() {
  Children& all = children();
  if (all.kept) return;
  const std::string uid = new_uuid7();
  start_keeper(fmt::format("{}={}", kMark, uid));
  ::setenv(kMark, uid.c_str(), 1);
  const std::lock_guard lock(all.mutex);
  all.older = list_children();  // and the keeper
  all.kept = ::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL) == 0;
}

bool keeps_descendants() { return children().kept; }

OwnChildren::OwnChildren() : lock_(children().mutex) {}

void OwnChildren::add(pid_t pid) { children().started.insert(pid); }

void OwnChildren::remove(pid_t pid) { children().started.erase(pid); }

// In rounds: what a killed one had below it is ours next. None of them can be mistaken, as the number of a child is not
// given to another before it is reaped.
void OwnChildren::end_orphans() {
  const Children& all = children();
  if (!all.kept) return;
  const auto deadline = PatienceClock::now() + kDying;
  while (PatienceClock::now() < deadline) {
    bool any = false;
    for (const pid_t pid : list_children()) {
      if (all.started.contains(pid) || all.older.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, nullptr, WNOHANG) == 0 && PatienceClock::now() < deadline) {
        std::this_thread::sleep_for(100us);
      }
    }
    if (!any) return;
  }
}

}  // namespace syslab
