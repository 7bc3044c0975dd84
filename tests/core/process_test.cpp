#include "core/process/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "core/process/pipe.hpp"

namespace syslab {
namespace {

using namespace std::chrono_literals;

SpawnOptions shell(const std::string& script) {
  SpawnOptions options;
  options.argv = {"sh", "-c", script};
  return options;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = ::read(fd, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

bool alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  if (!(stat >> number >> name >> state)) return false;
  return state != "Z" && state != "X";
}

bool gone_within(pid_t pid, std::chrono::milliseconds limit) {
  for (const auto deadline = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < deadline;) {
    if (!alive(pid)) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

TEST(Process, PipesConnectAllThreeStreams) {
  Process child = Process::spawn(shell("read line; echo \"got $line\"; echo oops >&2"));
  ASSERT_EQ(::write(child.to_child(), "hello\n", 6), 6);
  EXPECT_EQ(read_all(child.from_child()), "got hello\n");
  EXPECT_EQ(read_all(child.error_output()), "oops\n");
  EXPECT_EQ(child.wait().code, 0);
}

TEST(Process, TellsExitCodesFromSignals) {
  const ExitStatus exited = Process::spawn(shell("exit 3")).wait();
  EXPECT_FALSE(exited.signalled);
  EXPECT_EQ(exited.describe(), "exit code 3");
  const ExitStatus killed = Process::spawn(shell("kill -9 $$")).wait();
  EXPECT_TRUE(killed.signalled);
  EXPECT_EQ(killed.describe(), "killed by signal 9 (Killed)");
}

TEST(Process, AddsToTheEnvironmentAndReplacesWhatWasThere) {
  ::setenv("SYSLAB_TEST_OLD", "old", 1);
  SpawnOptions options = shell("echo $SYSLAB_TEST_OLD $SYSLAB_TEST_NEW");
  options.environment = {{"SYSLAB_TEST_OLD", "replaced"}, {"SYSLAB_TEST_NEW", "new"}};
  Process child = Process::spawn(options);
  EXPECT_EQ(read_all(child.from_child()), "replaced new\n");
}

TEST(Process, AMemoryLimitIsTheChildsAloneAndCannotBeRaised) {
  struct rlimit before {
  }, after{};
  ::getrlimit(RLIMIT_AS, &before);
  SpawnOptions options = shell("ulimit -v; ulimit -v 2097152 2>/dev/null || echo kept");
  options.memory_limit_bytes = 1ULL << 30;
  Process child = Process::spawn(options);
  EXPECT_EQ(read_all(child.from_child()), "1048576\nkept\n");
  ::getrlimit(RLIMIT_AS, &after);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur);
}

TEST(Process, AConfinedChildLeavesNoMemoryImageToAnyService) {
  const Confinement nothing_else;
  SpawnOptions options = shell("grep 'core file' /proc/self/limits");
  options.confinement = &nothing_else;
  Process child = Process::spawn(options);
  const std::string limit = read_all(child.from_child());
  EXPECT_EQ(child.wait().code, 0);
  EXPECT_NE(limit.find(" 1                    1 "), std::string::npos) << limit;
}

TEST(Process, AMissingProgramIsAnErrorWithItsReason) {
  SpawnOptions options;
  options.argv = {"/no/such/program"};
  try {
    Process::spawn(options);
    FAIL() << "spawned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_NE(std::string(error.what()).find("/no/such/program"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
  options.argv = {"no-such-program-in-path"};
  EXPECT_THROW(Process::spawn(options), Error);
}

TEST(Process, PollDoesNotWaitAndWaitMayBeCalledTwice) {
  Process child = Process::spawn(shell("read line"));
  EXPECT_FALSE(child.poll());
  child.close_input();
  EXPECT_EQ(child.wait().code, 1);  // read met the end
  EXPECT_EQ(child.wait().code, 1);
}

TEST(Process, TheDestructorKillsTheWholeGroup) {
  pid_t grandchild = 0;
  {
    Process child = Process::spawn(shell("sleep 100 & echo $!; wait"));
    std::array<char, 32> line{};
    ASSERT_GT(::read(child.from_child(), line.data(), line.size() - 1), 0);
    grandchild = static_cast<pid_t>(std::stol(line.data()));
    ASSERT_TRUE(alive(grandchild));
  }
  EXPECT_TRUE(gone_within(grandchild, 2s));
}

TEST(Process, WhatAnEndedChildLeftBehindIsKilledToo) {
  Process child = Process::spawn(shell("sleep 100 >/dev/null 2>&1 & echo $!"));
  const auto grandchild = static_cast<pid_t>(std::stol(read_all(child.from_child())));
  EXPECT_EQ(child.wait().code, 0);
  EXPECT_TRUE(gone_within(grandchild, 2s));
}

TEST(Process, AChildDiesWithItsParent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Process child = Process::spawn(shell("sleep 100"));
    const pid_t pid = child.pid();
    if (::write(ends[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    ::raise(SIGKILL);  // no destructor runs
  }
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(gone_within(child, 2s));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Process, NoDescriptorLeaksIntoTheChildButTheNamedOne) {
  const int leaky = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as a careless library does it
  const int wanted = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  SpawnOptions options = shell("ls -l /proc/$$/fd");
  options.extra_fd = wanted;
  Process child = Process::spawn(options);
  const std::string listing = read_all(child.from_child());
  EXPECT_NE(listing.find(std::to_string(wanted) + " -> /dev/zero"), std::string::npos) << listing;
  EXPECT_EQ(listing.find(std::to_string(leaky) + " -> /dev/null"), std::string::npos) << listing;
  ::close(leaky);
  ::close(wanted);
}

TEST(Process, AHandlerOfTheParentNeverRunsInTheChild) {
  static volatile sig_atomic_t calls = 0;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { calls = calls + 1; };
  ::sigaction(SIGTERM, &action, &before);
  Process child = Process::spawn(shell("kill -TERM $$; sleep 100"));
  const ExitStatus status = child.wait();
  ::sigaction(SIGTERM, &before, nullptr);
  EXPECT_TRUE(status.signalled);
  EXPECT_EQ(status.code, SIGTERM);
  EXPECT_EQ(calls, 0);
}

TEST(TailReader, KeepsTheLastLines) {
  Process child = Process::spawn(shell("seq 1 20000 >&2; echo; echo last >&2"));
  TailReader tail(child.error_output(), 100);
  while (tail.drain()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(tail.last_lines(2), "20000\nlast");
  EXPECT_LE(tail.text().size(), 4296U);
}

}  // namespace
}  // namespace syslab
