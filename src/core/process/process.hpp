// Child processes: spawned with a control pipe in each direction, in their own process group, and never left behind: a
// child's group dies with the child, and the child dies with the thread that spawned it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

struct sock_fprog;

namespace syslab {

// A file descriptor that closes itself.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// What a child may no longer do from its first instruction on, nor anything that it starts: a Landlock ruleset and a
// seccomp filter of the kernel's form (judge/walls.hpp makes them). It has no privileges, and gains none by what it
// executes.
struct Confinement {
  int landlock_ruleset = -1;                  // −1: none
  const struct sock_fprog* filter = nullptr;  // null: none
  bool own_shared_memory = false;             // core/process/own_namespaces.hpp
  std::uint64_t shared_memory_bytes = 0;      // the most that it holds; 0: what the system gives it
  bool own_loopback = false;                  // with own_shared_memory alone
};

struct SpawnOptions {
  std::vector<std::string> argv;                   // argv[0] is looked up in PATH when it has no slash
  std::map<std::string, std::string> environment;  // added to ours
  bool capture_stderr = true;                      // else inherited
  int extra_fd = -1;                               // kept open in the child under the same number; -1: none
  // Used as its standard input, output and error instead of pipes; must be above our own standard streams; borrowed.
  std::array<int, 3> streams{-1, -1, -1};
  // In its own process group, which ends with the child. Otherwise in ours: then a signal to our group also ends the
  // child's children, even if we are killed ourselves.
  bool own_group = true;
  const Confinement* confinement = nullptr;  // borrowed; null: none
  std::uint64_t memory_limit_bytes = 0;      // of its addresses, for good (RLIMIT_AS); 0: ours
};

// How a child ended. `usage.ru_maxrss` is an upper bound: Linux counts the spawning process's memory before exec into
// it.
struct ExitStatus {
  bool signalled = false;
  int code = 0;  // exit code, or the signal's number
  struct rusage usage {};
  std::chrono::steady_clock::time_point ended;  // by then; before what it had left behind was ended
  int left_running = 0;                         // processes that it had left behind, as far as they had to be killed
  bool left_alive = false;                      // and some that did not end even so
  std::string lost;                             // why its end is unknown; otherwise empty
  std::string describe() const;                 // "exit code 3", "killed by signal 9 (Killed)"; `lost` if set
};

// A running child. The destructor kills its whole process group and reaps it; poll() and wait() do the same with the
// rest of the group once the child has ended, and with what left the group where keep_descendants() was called.
class Process {
 public:
  // Throws Error(internal) if the program cannot be started, with the reason.
  static Process spawn(const SpawnOptions& options);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  int to_child() const { return to_child_.get(); }      // its standard input
  int from_child() const { return from_child_.get(); }  // its standard output
  int error_output() const { return error_.get(); }     // its standard error, when captured
  void close_input() { to_child_.reset(); }

  std::optional<ExitStatus> poll();  // without waiting
  ExitStatus wait();
  // Signals every process of its group, or only the child if the group is ours; no error if it is gone.
  void kill_group(int signal);

 private:
  Process() = default;
  void reap(int flags) noexcept;
  void end() noexcept;

  pid_t pid_ = -1;
  bool own_group_ = true;
  FileDescriptor to_child_, from_child_, error_;
  std::optional<ExitStatus> status_;
};

}  // namespace syslab
