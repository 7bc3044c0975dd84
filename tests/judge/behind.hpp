// What a piece of code can do behind walls: they cannot be taken down, so it runs in a child.
#pragma once

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/process/process.hpp"

namespace syslab::judge {

inline constexpr int kWallRefused = 200, kEndedBySignal = 201;

// Runs `body` in a child with these walls up; what it returns, 0 to 199.
template <typename Body>
int behind(const Confinement& walls, const Body& body) {
  constexpr long kRestrictSelf = 446;  // landlock_restrict_self on every architecture
  const pid_t child = ::fork();
  if (child == 0) {
    bool up = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (walls.landlock_ruleset >= 0) up = up && ::syscall(kRestrictSelf, walls.landlock_ruleset, 0U) == 0;
    if (walls.filter != nullptr) up = up && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, walls.filter, 0, 0) == 0;
    ::_exit(up ? body() : kWallRefused);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kEndedBySignal;
}

// 0, or why not.
template <typename Result>
int error_of(Result result) {
  return result < 0 ? errno : 0;
}

}  // namespace syslab::judge
