#include "worker/cases/own_time.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/process/process_stat.hpp"

namespace syslab::worker {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

void stay_on(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

// Computes for so long on one processor, beside others.
pid_t start_busy(int processor) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  stay_on(processor);
  const auto end = Clock::now() + 10s;
  while (Clock::now() < end) continue;
  ::_exit(0);
}

void stop(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(OwnTime, PassesAsTimeDoesWhereNothingIsWaitedFor) {
  OwnTime time([] { return pid_t{0}; });
  std::this_thread::sleep_for(30ms);
  EXPECT_GE(time.spent(), 30ms - 1ms);
}

// Of three that share a processor each has a third: of this thread's time, and of a process's that it waits for.
TEST(OwnTime, DoesNotPassWhileOthersHaveTheProcessor) {
  if (processor_times(0).value_or(ProcessorTimes{}).ran == 0ns) GTEST_SKIP() << "this kernel does not tell";
  const int processor = ::sched_getcpu();
  const pid_t one = start_busy(processor), other = start_busy(processor), asked = start_busy(processor);
  OwnTime of_asked([asked] { return asked; });
  double own_share = 0;
  std::thread here([&] {
    stay_on(processor);
    OwnTime own([] { return pid_t{0}; });
    const auto began = Clock::now();
    while (Clock::now() - began < 400ms) continue;
    own_share = Seconds(own.spent()).count() / Seconds(Clock::now() - began).count();
  });
  const auto began = Clock::now();
  here.join();
  const double asked_share = Seconds(of_asked.spent()).count() / Seconds(Clock::now() - began).count();
  for (const pid_t each : {one, other, asked}) stop(each);
  EXPECT_LT(own_share, 0.7);
  EXPECT_LT(asked_share, 0.7);
}

// One that waits while the other computes: what it waits is no time that the other had not.
TEST(OwnTime, IsNoLessThanWhatWasComputed) {
  if (processor_times(0).value_or(ProcessorTimes{}).ran == 0ns) GTEST_SKIP() << "this kernel does not tell";
  const int processor = ::sched_getcpu();
  const pid_t others[] = {start_busy(processor), start_busy(processor), start_busy(processor)};
  const pid_t asked = start_busy(processor);  // waits three times as long as it runs
  OwnTime time([asked] { return asked; });
  const Nanoseconds before = processor_times(0)->ran;
  const auto began = Clock::now();
  while (processor_times(0)->ran - before < 80ms && Clock::now() - began < 20s) continue;
  EXPECT_GE(time.spent(), 80ms);
  stop(asked);
  for (const pid_t each : others) stop(each);
}

TEST(OwnTime, GoesOnWithAnotherProcessWhereTheFirstHasEnded) {
  pid_t asked = start_busy(::sched_getcpu());
  OwnTime time([&asked] { return asked; });
  std::this_thread::sleep_for(20ms);
  const Nanoseconds before = time.spent();
  stop(asked);
  EXPECT_GE(time.spent() + 1ms, before) << "what has ended waited no less";
  asked = start_busy(::sched_getcpu());
  std::this_thread::sleep_for(20ms);
  EXPECT_GT(time.spent(), 0ns);
  stop(asked);
}

}  // namespace
}  // namespace syslab::worker
