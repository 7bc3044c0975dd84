#include "core/process/descendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "core/ids.hpp"
#include "core/process/process_stat.hpp"

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

// The process groups that we have made and not yet ended, as the keeper knows them: by a number on its pipe for each
// that begins, and the same below zero for one that has ended.
class Groups {
 public:
  void take(pid_t said) { said > 0 ? void(groups_.insert(said)) : void(groups_.erase(-said)); }
  // The numbers of groups that are empty by now may be given to others: whoever starts later is none of ours.
  void close() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    latest_ = static_cast<std::uint64_t>(now.tv_sec + 1) * static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  }
  bool holds(pid_t pid) const {
    const auto stat = groups_.empty() ? std::nullopt : process_stat(pid);
    return stat && stat->runs() && groups_.contains(stat->group) && stat->start_ticks <= latest_;
  }

 private:
  std::set<pid_t> groups_;
  std::uint64_t latest_ = 0;
};

void tell_keeper(pid_t group) {
  const int pipe = children().pipe;
  // Not read where it is stopped: then there is the mark.
  if (pipe >= 0 && ::send(pipe, &group, sizeof group, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

// Kills each process with the mark or in one of the groups; false when there is none. The descriptor comes before the
// look: so it is the process that was looked at that is killed, and not a later one of the same number.
bool kill_ours(const std::string& mark, const Groups& groups) {
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
    if (bears(pid, mark) || groups.holds(pid)) {
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
  Groups groups;
  pid_t said = 0;  // written as a whole, and so read
  for (ssize_t got = 0; (got = ::read(pipe, &said, sizeof said)) > 0 || (got < 0 && errno == EINTR);) {
    if (got == sizeof said) groups.take(said);
  }
  groups.close();
  const auto deadline = PatienceClock::now() + kDying;
  while (kill_ours(mark, groups) && PatienceClock::now() < deadline) std::this_thread::sleep_for(2ms);
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
  // Sockets, since to write to a pipe whose reader was killed ends the writer.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
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
  keep_orphans();
}

void keep_orphans() {
  Children& all = children();
  const std::lock_guard lock(all.mutex);
  if (all.kept) return;
  all.older = list_children();  // and the keeper
  all.kept = ::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL) == 0;
}

bool keeps_descendants() { return children().kept; }

OwnChildren::OwnChildren() : lock_(children().mutex) {}

void OwnChildren::add(pid_t pid, bool own_group) {
  children().started.insert(pid);
  if (own_group) tell_keeper(pid);
}

void OwnChildren::remove(pid_t pid) {
  children().started.erase(pid);
  tell_keeper(-pid);
}

// In rounds: what a killed one had below it is ours next. None of them can be mistaken, as the number of a child is not
// given to another before it is reaped.
OwnChildren::Orphans OwnChildren::end_orphans() {
  const Children& all = children();
  Orphans found;
  if (!all.kept) return found;
  const auto deadline = PatienceClock::now() + kDying;
  while (PatienceClock::now() < deadline) {
    bool any = false;
    for (const pid_t pid : list_children()) {
      if (all.started.contains(pid) || all.older.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);
      int status = 0;
      pid_t reaped = 0;
      while ((reaped = ::waitpid(pid, &status, WNOHANG)) == 0 && PatienceClock::now() < deadline) {
        std::this_thread::sleep_for(100us);
      }
      if (reaped == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++found.running;
    }
    if (!any) return found;
  }
  found.alive = true;
  return found;
}

}  // namespace syslab
