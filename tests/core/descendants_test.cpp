#include "core/process/descendants.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "core/process/process.hpp"
#include "core/process/process_stat.hpp"

namespace syslab {
namespace {

using namespace std::chrono_literals;

bool alive(pid_t pid) {
  const auto stat = process_stat(pid);
  return stat && stat->runs();
}

bool gone_within(pid_t pid, std::chrono::milliseconds limit) {
  for (const auto deadline = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < deadline;) {
    if (!alive(pid)) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

// A shell that starts a sleep in a session of its own, tells its number, and goes on.
Process shell_with_a_stray(const std::string& then) {
  SpawnOptions options;
  options.argv = {"sh", "-c", "setsid sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1' & " + then};
  return Process::spawn(options);
}

pid_t read_number(int fd) {
  std::string text;
  for (char one = 0; ::read(fd, &one, 1) == 1 && one != '\n';) text += one;
  return static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
}

// Keeping is for a process's whole life: each test has one of its own, which tells a number at the end.
struct Kept {
  pid_t told = 0;
  int status = 0;
};
Kept in_a_process(const std::function<void(int tell)>& body) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    keep_descendants();
    body(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  Kept kept;
  kept.told = read_number(ends[0]);
  ::close(ends[0]);
  ::waitpid(child, &kept.status, 0);
  return kept;
}

void tell(int fd, pid_t number) {
  const std::string line = std::to_string(number) + "\n";
  if (::write(fd, line.data(), line.size()) < 0) ::_exit(9);
}

TEST(Descendants, WhatLeftTheGroupEndsWithTheChild) {
  const Kept kept = in_a_process([](int fd) {
    Process child = shell_with_a_stray("exec sleep 300");
    const pid_t stray = read_number(child.from_child());
    if (!alive(stray)) ::_exit(2);
    child.kill_group(SIGKILL);
    child.wait();
    if (alive(stray)) ::_exit(1);
    tell(fd, stray);
  });
  EXPECT_EQ(kept.status, 0);
  EXPECT_GT(kept.told, 0);
}

TEST(Descendants, AnOrphanOfALivingChildIsNotTakenForAnEndedOnes) {
  const Kept kept = in_a_process([](int fd) {
    // The stray's parent is gone at once; the child lives.
    SpawnOptions options;
    options.argv = {"sh", "-c", "(setsid sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1' &); exec sleep 300"};
    Process living = Process::spawn(options);
    const pid_t stray = read_number(living.from_child());
    SpawnOptions nothing;
    nothing.argv = {"true"};
    Process::spawn(nothing).wait();
    if (!alive(stray)) ::_exit(1);
    living.kill_group(SIGKILL);
    living.wait();
    if (alive(stray)) ::_exit(2);
    tell(fd, stray);
  });
  EXPECT_EQ(kept.status, 0);
}

// As a worker, whose parent has the keeper.
TEST(Descendants, NothingOfAChildIsLeftNotEvenAZombieAndWhatStillRanIsCounted) {
  const pid_t outer = ::fork();
  if (outer == 0) {
    keep_orphans();
    Process child = shell_with_a_stray("sh -c 'exit 0' & sleep 0.1");
    if (!alive(read_number(child.from_child()))) ::_exit(2);
    const ExitStatus ended = child.wait();
    if (ended.left_running != 1 || ended.left_alive) ::_exit(3);
    if (::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD) ::_exit(4);
    SpawnOptions nothing;
    nothing.argv = {"true"};
    ::_exit(Process::spawn(nothing).wait().left_running == 0 ? 0 : 5);
  }
  int status = 0;
  ::waitpid(outer, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Descendants, AnOlderChildOfThisProcessIsLeftAlone) {
  const pid_t outer = ::fork();
  if (outer == 0) {
    const pid_t older = ::fork();
    if (older == 0) {
      ::pause();
      ::_exit(0);
    }
    keep_descendants();
    SpawnOptions nothing;
    nothing.argv = {"true"};
    Process::spawn(nothing).wait();
    const bool lives = alive(older);
    ::kill(older, SIGKILL);
    ::_exit(lives ? 0 : 1);
  }
  int status = 0;
  ::waitpid(outer, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Descendants, WhatLeftTheGroupEndsWithAKilledParent) {
  const Kept kept = in_a_process([](int fd) {
    Process child = shell_with_a_stray("exec sleep 300");
    tell(fd, read_number(child.from_child()));
    ::kill(::getpid(), SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(kept.status));
  EXPECT_TRUE(gone_within(kept.told, 1s));
}

// What cannot leave its group may still throw away what it was marked by.
TEST(Descendants, WhatThrewItsEnvironmentAwayEndsWithAKilledParent) {
  const Kept kept = in_a_process([](int fd) {
    SpawnOptions options;
    options.argv = {"sh", "-c", "env -i sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1' & exec sleep 300"};
    Process child = Process::spawn(options);
    tell(fd, read_number(child.from_child()));
    ::kill(::getpid(), SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(kept.status));
  EXPECT_TRUE(gone_within(kept.told, 1s));
}

}  // namespace
}  // namespace syslab
