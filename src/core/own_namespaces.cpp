#include "core/own_namespaces.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace syslab {
namespace {

constexpr const char* kFolder = "/dev/shm";

// The same number of every architecture. Reading, writing, cutting off, making, removing and moving files: bits 1 to 14
// but for those that a version of Landlock does not know, which it refuses.
constexpr long kAddRule = 445;
constexpr int kPathBeneath = 1;
constexpr std::uint64_t kFiles = 0x1ffe, kMoved = 1U << 13, kTruncated = 1U << 14;

struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};

int write_file(const char* path, const char* text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int failed = ::write(file, text, std::strlen(text)) < 0 ? errno : 0;
  ::close(file);
  return failed;
}

// "1000 1000 1": whoever it was outside, it stays inside, and nobody else is known there.
int write_map(const char* path, unsigned id) {
  char digits[16], line[64];
  char* first = digits + sizeof digits - 1;
  *first = '\0';
  do {
    *--first = static_cast<char>('0' + id % 10);
    id /= 10;
  } while (id != 0);
  char* end = line;
  for (const char* part : {static_cast<const char*>(first), " ", static_cast<const char*>(first), " 1"}) {
    for (; *part != '\0'; ++part) *end++ = *part;
  }
  *end = '\0';
  return write_file(path, line);
}

int allow_folder(int landlock_ruleset) {
  const int folder = ::open(kFolder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  int failed = EINVAL;
  for (const std::uint64_t rights : {kFiles | kMoved | kTruncated, kFiles | kMoved, kFiles}) {
    const PathBeneath rule{rights, folder};
    failed = ::syscall(kAddRule, landlock_ruleset, kPathBeneath, &rule, 0U) == 0 ? 0 : errno;
    if (failed != EINVAL) break;
  }
  ::close(folder);
  return failed;
}

// In a new network it is down, and gets its addresses when it comes up.
int raise_loopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  ifreq interface {};
  std::memcpy(interface.ifr_name, "lo", sizeof "lo");
  interface.ifr_flags = IFF_UP;
  const int failed = ::ioctl(socket, SIOCSIFFLAGS, &interface) == 0 ? 0 : errno;
  ::close(socket);
  return failed;
}

bool offers(bool loopback) {
  const auto child =
      static_cast<pid_t>(::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) ::_exit(take_own_namespaces(-1, loopback) == 0 ? 0 : 1);
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int take_own_namespaces(int landlock_ruleset, bool loopback) {
  const unsigned user = ::geteuid(), group = ::getegid();
  // The files below belong to root while the process, a copy of one that hides itself, may not be read.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return errno;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | (loopback ? CLONE_NEWNET : 0)) != 0) return errno;
  if (const int failed = write_file("/proc/self/setgroups", "deny"); failed != 0) return failed;
  if (const int failed = write_map("/proc/self/uid_map", user); failed != 0) return failed;
  if (const int failed = write_map("/proc/self/gid_map", group); failed != 0) return failed;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (::mount("tmpfs", kFolder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0) return errno;
  if (loopback) {
    if (const int failed = raise_loopback(); failed != 0) return failed;
  }
  return landlock_ruleset < 0 ? 0 : allow_folder(landlock_ruleset);
}

bool offers_own_shared_memory() {
  static const bool offered = offers(false);
  return offered;
}

bool offers_own_loopback() {
  static const bool offered = offers(true);
  return offered;
}

}  // namespace syslab
