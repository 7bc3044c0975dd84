#include "core/process/own_namespaces.hpp"

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

#include "core/process/descendants.hpp"

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

// A text of parts, without an allocation.
struct Line {
  char text[96];
  char* end = text;

  Line& operator<<(const char* part) {
    for (; *part != '\0'; ++part) *end++ = *part;
    *end = '\0';
    return *this;
  }
  Line& operator<<(std::uint64_t number) {
    char digits[24];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    do {
      *--first = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return *this << first;
  }
};

// "1000 1000 1": whoever it was outside, it stays inside, and nobody else is known there.
int write_map(const char* path, std::uint64_t id) {
  Line line;
  line << id << " " << id << " 1";
  return write_file(path, line.text);
}

// Empty files take the kernel's memory, too: so they are counted.
int mount_shared_memory(std::uint64_t bytes) {
  constexpr std::uint64_t kPage = 4096, kFewestEntries = 1024;
  Line how;
  how << "mode=1777";
  if (bytes > 0)
    how << ",size=" << bytes << ",nr_inodes=" << (bytes / kPage < kFewestEntries ? kFewestEntries : bytes / kPage);
  return ::mount("tmpfs", kFolder, "tmpfs", MS_NOSUID | MS_NODEV, how.text) == 0 ? 0 : errno;
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
  const OwnChildren held;  // nobody takes this child for an orphan
  const auto child =
      static_cast<pid_t>(::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) ::_exit(take_own_namespaces(-1, 0, loopback) == 0 ? 0 : 1);
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int take_own_namespaces(int landlock_ruleset, std::uint64_t shared_memory_bytes, bool loopback) {
  const unsigned user = ::geteuid(), group = ::getegid();
  // The files below belong to root while the process, a copy of one that hides itself, may not be read.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return errno;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | (loopback ? CLONE_NEWNET : 0)) != 0) return errno;
  if (const int failed = write_file("/proc/self/setgroups", "deny"); failed != 0) return failed;
  if (const int failed = write_map("/proc/self/uid_map", user); failed != 0) return failed;
  if (const int failed = write_map("/proc/self/gid_map", group); failed != 0) return failed;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (const int failed = mount_shared_memory(shared_memory_bytes); failed != 0) return failed;
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
