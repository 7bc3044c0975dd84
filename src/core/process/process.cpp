#include "core/process/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "core/error.hpp"
#include "core/process/descendants.hpp"
#include "core/process/own_namespaces.hpp"

extern char** environ;

namespace syslab {
namespace {

struct Pipe {
  FileDescriptor read, write;
};

// Both ends above standard error and closed on exec: a caller that closed its own standard streams must not get a pipe
// with a number that the child is about to overwrite.
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(ErrorKind::internal, "create a pipe", errno, "pipe2");
  Pipe made{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  for (FileDescriptor* end : {&made.read, &made.write}) {
    if (end->get() > STDERR_FILENO) continue;
    const int moved = ::fcntl(end->get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (moved < 0) throw_errno(ErrorKind::internal, "duplicate a pipe", errno, "fcntl");
    end->reset(moved);
  }
  return made;
}

// The lookup of execvp(3), done before the child exists: there only async-signal-safe calls are allowed.
std::string resolve_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw Error(ErrorKind::internal, fmt::format("cannot start '{}': no such program in PATH", name), "execve");
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& additions) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (additions.count(std::string(text.substr(0, text.find('=')))) == 0) merged.emplace_back(text);
  }
  for (const auto& [name, value] : additions) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  int input, output, error;  // error −1: inherited
  int extra_fd;
  bool own_group;
  const Confinement* confinement;
  std::uint64_t memory_limit_bytes;
  bool keeps_orphans;
  pid_t parent;
  sigset_t signal_mask;  // to restore
};

#ifndef SYS_landlock_restrict_self
constexpr long kLandlockRestrictSelf = 446;  // of every architecture
#else
constexpr long kLandlockRestrictSelf = SYS_landlock_restrict_self;
#endif

// A crash keeps no memory image: some systems give it to a service that stores it where its user may read it. A limit
// of one byte keeps it from a service, too, which zero does not (core(5) speaks of files alone; fs/coredump.c).
int leave_no_core() {
  const rlimit one{1, 1}, none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &one) == 0) return 0;  // not where it is none already
  return ::setrlimit(RLIMIT_CORE, &none) == 0 ? 0 : errno;
}

// The errno of what failed, or 0. The filter comes last: it may refuse what is called before it.
int confine(const Confinement& confinement) {
  if (const int failed = leave_no_core(); failed != 0) return failed;
  if (confinement.own_shared_memory) {
    const int failed =
        take_own_namespaces(confinement.landlock_ruleset, confinement.shared_memory_bytes, confinement.own_loopback);
    if (failed != 0) return failed;
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  // Root's privileges as well: they would read other processes' memory in spite of the rest. After the line above no
  // program gives them back.
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capset, &header, none) != 0) return errno;
  if (confinement.landlock_ruleset >= 0 && ::syscall(kLandlockRestrictSelf, confinement.landlock_ruleset, 0U) != 0) {
    return errno;
  }
  if (confinement.filter != nullptr && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, confinement.filter, 0, 0) != 0) {
    return errno;
  }
  return 0;
}

// Runs between vfork and exec, in the parent's memory: only async-signal-safe calls, no allocation. Returns the errno
// of what failed.
int become(const ChildPlan& plan) {
  if (plan.own_group) ::setpgid(0, 0);
  // Fires when the thread that spawned ends, too: spawn from a thread that outlives the child.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  if (::getppid() != plan.parent) return ESRCH;  // it died before the line above
  // What it leaves orphaned stays below it until it ends, and is not taken for another child's.
  if (plan.keeps_orphans) ::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
  // The parent's handlers must not run here once signals are unblocked (this table is the child's own).
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
      action.sa_handler = SIG_DFL;
      action.sa_flags = 0;
      ::sigaction(number, &action, nullptr);
    }
  }
  if (::dup2(plan.input, STDIN_FILENO) < 0 || ::dup2(plan.output, STDOUT_FILENO) < 0) return errno;
  if (plan.error >= 0 && ::dup2(plan.error, STDERR_FILENO) < 0) return errno;
#ifdef SYS_close_range
  // Whatever the parent forgot to mark (a database, a socket) stays behind. Kernels before 5.11 refuse; then the
  // parent's own marks must do.
  ::syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
#endif
  if (plan.extra_fd >= 0 && ::fcntl(plan.extra_fd, F_SETFD, 0) != 0) return errno;
  ::sigprocmask(SIG_SETMASK, &plan.signal_mask, nullptr);
  if (plan.confinement != nullptr) {
    if (const int failed = confine(*plan.confinement); failed != 0) return failed;
  }
  // Nothing of ours is allocated under it: exec makes a new address space.
  if (plan.memory_limit_bytes != 0) {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_AS, &limit) != 0) return errno;
    limit.rlim_max = std::min<rlim_t>(limit.rlim_max, plan.memory_limit_bytes);
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return errno;
  }
  ::execve(plan.program, plan.argv, plan.envp);
  return errno;
}

// vfork rather than fork: a parent with gigabytes mapped spawns as fast as a small one, and exec's failure comes back
// through the shared memory. Kept apart so that no local of a caller can be clobbered.
[[gnu::noinline]] pid_t spawn_child(const ChildPlan& plan, volatile int* failure) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t pid = ::vfork();
#pragma GCC diagnostic pop
  if (pid == 0) {
    *failure = become(plan);
    ::_exit(127);
  }
  if (pid < 0) *failure = errno;
  return pid;
}

// For what must not be done in the parent's memory. The parent waits all the same, and hears of a failure through a
// page of memory that both have.
[[gnu::noinline]] pid_t spawn_child_apart(const ChildPlan& plan, volatile int* failure) {
  void* const page = ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    *failure = errno;
    return -1;
  }
  auto* const failed = static_cast<volatile int*>(page);
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    *failed = become(plan);
    ::_exit(127);
  }
  *failure = pid < 0 ? errno : *failed;
  ::munmap(page, sizeof(int));
  return pid;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

void FileDescriptor::reset(int fd) {
  if (fd_ >= 0 && fd_ != fd) ::close(fd_);
  fd_ = fd;
}

std::string ExitStatus::describe() const {
  if (!lost.empty()) return lost;
  if (!signalled) return fmt::format("exit code {}", code);
  const char* name = ::strsignal(code);
  return fmt::format("killed by signal {} ({})", code, name != nullptr ? name : "unknown");
}

Process Process::spawn(const SpawnOptions& options) {
  if (options.argv.empty()) throw Error(ErrorKind::internal, "cannot start a process without a program");
  if (options.extra_fd >= 0 && options.extra_fd <= STDERR_FILENO) {
    throw Error(ErrorKind::internal, fmt::format("descriptor {} is a standard stream of the child", options.extra_fd));
  }
  const std::string program = resolve_program(options.argv.front());
  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = merged_environment(options.environment);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);

  const bool piped = options.streams[0] < 0;
  Pipe input, output, error;
  if (piped) {
    input = make_pipe();
    output = make_pipe();
    if (options.capture_stderr) error = make_pipe();
  }

  ChildPlan plan{program.c_str(),
                 argv.data(),
                 envp.data(),
                 piped ? input.read.get() : options.streams[0],
                 piped ? output.write.get() : options.streams[1],
                 piped ? error.write.get() : options.streams[2],
                 options.extra_fd,
                 options.own_group,
                 options.confinement,
                 options.memory_limit_bytes,
                 keeps_descendants(),
                 ::getpid(),
                 {}};
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &plan.signal_mask);
  volatile int failure = 0;
  OwnChildren own;
  const bool apart = options.confinement != nullptr && options.confinement->own_shared_memory;
  const pid_t pid = apart ? spawn_child_apart(plan, &failure) : spawn_child(plan, &failure);
  ::pthread_sigmask(SIG_SETMASK, &plan.signal_mask, nullptr);
  if (failure == 0) own.add(pid, options.own_group);
  if (failure != 0) {
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    throw_errno(ErrorKind::internal, fmt::format("start '{}'", program), failure, pid < 0 ? "vfork" : "execve");
  }

  // The child does so, too. Where vfork does not hold the parent back until then (ThreadSanitizer makes it a fork), the
  // group must be there before anybody signals it; once the child runs its program this fails, and need not succeed.
  if (options.own_group) ::setpgid(pid, pid);

  Process process;
  process.pid_ = pid;
  process.own_group_ = options.own_group;
  process.to_child_ = std::move(input.write);
  process.from_child_ = std::move(output.read);
  process.error_ = std::move(error.read);
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      own_group_(other.own_group_),
      to_child_(std::move(other.to_child_)),
      from_child_(std::move(other.from_child_)),
      error_(std::move(other.error_)),
      status_(std::exchange(other.status_, std::nullopt)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    own_group_ = other.own_group_;
    to_child_ = std::move(other.to_child_);
    from_child_ = std::move(other.from_child_);
    error_ = std::move(other.error_);
    status_ = std::exchange(other.status_, std::nullopt);
  }
  return *this;
}

Process::~Process() { end(); }

void Process::end() noexcept {
  if (pid_ < 0 || status_) return;
  kill_group(SIGKILL);
  reap(0);
}

std::optional<ExitStatus> Process::poll() {
  if (!status_ && pid_ > 0) reap(WNOHANG);
  return status_;
}

ExitStatus Process::wait() {
  if (!status_ && pid_ > 0) reap(0);
  return status_.value_or(ExitStatus{});
}

// In two steps: while the dead child is still a zombie its number cannot be given to another process, so the rest of
// its group can be killed without hitting a stranger.
void Process::reap(int flags) noexcept {
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | flags);
  } while (result != 0 && errno == EINTR);
  if (result == 0 && info.si_pid == 0) return;  // WNOHANG, still running
  if (own_group_) ::kill(-pid_, SIGKILL);
  OwnChildren own;
  ExitStatus ended;
  int raw = 0;
  pid_t reaped = 0;
  do {
    reaped = ::wait4(pid_, &raw, 0, &ended.usage);
  } while (reaped < 0 && errno == EINTR);
  ended.ended = std::chrono::steady_clock::now();
  ended.signalled = reaped == pid_ && WIFSIGNALED(raw);
  ended.code = ended.signalled ? WTERMSIG(raw) : WEXITSTATUS(raw);
  own.remove(pid_);
  const OwnChildren::Orphans orphans = own.end_orphans();
  ended.left_running = orphans.running;
  ended.left_alive = orphans.alive;
  status_ = ended;
}

void Process::kill_group(int signal) {
  if (pid_ > 0 && !status_) ::kill(own_group_ ? -pid_ : pid_, signal);
}

}  // namespace syslab
