#include "runner/standstill.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "core/process/process.hpp"
#include "core/process/process_stat.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

// It has a group of its own, and prints a line once it does what it is to do.
Process python(const std::string& script, const std::string& how = "") {
  SpawnOptions options;
  options.argv = {"python3", "-c", script, how};
  Process child = Process::spawn(options);
  char begun = 0;
  EXPECT_EQ(::read(child.from_child(), &begun, 1), 1);
  return child;
}

constexpr const char* kFamily = R"(
import os, threading, time
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
if os.fork() == 0:
    if os.fork() == 0: spin()
    spin()
print(flush=True)
time.sleep(1000)
)";

TEST(Standstill, ThreadsAndGrandchildrenStandStillAndStaySo) {
  Process child = python(kFamily);
  child.kill_group(SIGSTOP);
  const Standstill stopped(child.pid(), Standstill::kLimit);
  EXPECT_TRUE(stopped.reached());
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(stopped.lasts());
}

TEST(Standstill, OneThatIsWokenUpIsSeenAlthoughItSleepsAgain) {
  Process child = python(kFamily);
  child.kill_group(SIGSTOP);
  const Standstill stopped(child.pid(), Standstill::kLimit);
  ASSERT_TRUE(stopped.reached());
  child.kill_group(SIGCONT);
  std::this_thread::sleep_for(50ms);
  child.kill_group(SIGSTOP);
  EXPECT_TRUE(Standstill(child.pid(), Standstill::kLimit).reached());
  EXPECT_FALSE(stopped.lasts());
}

TEST(Standstill, WhoGetsNoSignalDoesNotReachIt) {
  Process child = python(kFamily);
  const Standstill running(child.pid(), 20ms);
  EXPECT_FALSE(running.reached());
  EXPECT_FALSE(running.lasts());
}

constexpr const char* kLeaves = R"(
import os, sys, time
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    print(flush=True)
    while os.getppid() == parent:
        if sys.argv[1] == "idle": time.sleep(2)
    os._exit(0)
time.sleep(1000)
)";

TEST(Standstill, WhatHasLeftTheGroupIsSeenByTheProcessorTimeThatItUses) {
  for (const bool busy : {false, true}) {
    Process child = python(kLeaves, busy ? "busy" : "idle");
    child.kill_group(SIGSTOP);
    const Standstill stopped(child.pid(), Standstill::kLimit);
    EXPECT_TRUE(stopped.reached());
    std::this_thread::sleep_for(50ms);
    // On a busy machine the process may wait seconds for a processor.
    for (int i = 0; busy && stopped.lasts() && i < 100; ++i) std::this_thread::sleep_for(50ms);
    EXPECT_EQ(stopped.lasts(), !busy);
  }
}

// Filling a gigabyte takes tenths of a second, in which a thread has a stop pending and goes on.
constexpr const char* kFills = R"(
import ctypes, mmap, time
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.munmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
print(flush=True)
while True:
    libc.munmap(libc.mmap(None, 1 << 30, 3, 0x8022, -1, 0), 1 << 30)
)";

TEST(Standstill, ALongSystemCallIsWaitedForOrNotedAsOne) {
  Process child = python(kFills);
  std::this_thread::sleep_for(20ms);
  child.kill_group(SIGSTOP);
  if (!is_stopped(child.pid())) {  // else it was between two calls
    EXPECT_FALSE(Standstill(child.pid(), 0ms).reached());
  }
  const Standstill stopped(child.pid(), 20s);
  EXPECT_TRUE(stopped.reached());
  EXPECT_TRUE(is_stopped(child.pid()));
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(stopped.lasts());
}

// Also what a mount of /proc with hidepid=2 shows of a worker that may not be read: nothing.
TEST(Standstill, WhatIsNotThereToBeSeenDoesNotReachIt) {
  Process child = python(kFamily);
  const pid_t pid = child.pid();
  child.kill_group(SIGKILL);
  child.wait();
  EXPECT_FALSE(Standstill(pid, 20ms).reached());
}

TEST(Standstill, WhereNoDescriptorIsLeftToReadWithNothingReachesIt) {
  Process child = python(kFamily);
  child.kill_group(SIGSTOP);
  ASSERT_TRUE(Standstill(child.pid(), Standstill::kLimit).reached());
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Standstill unseen(child.pid(), 20ms);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(unseen.reached());
  EXPECT_FALSE(unseen.lasts());
}

TEST(Standstill, WhatRunsElsewhereIsNotKnown) { EXPECT_FALSE(Standstill(-1, 0ms).reached()); }

}  // namespace
}  // namespace syslab::runner
