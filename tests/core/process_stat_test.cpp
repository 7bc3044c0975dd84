#include "core/process/process_stat.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace syslab {
namespace {

TEST(ProcessStat, TellsOfThisProcess) {
  const ProcessStat own = process_stat(::getpid()).value();
  EXPECT_EQ(own.parent, ::getppid());
  EXPECT_EQ(own.group, ::getpgrp());
  EXPECT_TRUE(own.runs());
  EXPECT_GT(own.start_ticks, process_stat(1).value().start_ticks);
}

TEST(ProcessStat, AProgramMayBeNamedLikeFields) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_NAME, ") Z 1 (2) X 3");
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  const auto stopped = process_stat(child);
  ::kill(child, SIGCONT);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  const auto remains = process_stat(child);
  ::waitpid(child, &status, 0);

  ASSERT_TRUE(stopped && remains);
  EXPECT_EQ(stopped->state, 'T');
  EXPECT_TRUE(stopped->runs());
  EXPECT_EQ(stopped->parent, ::getpid());
  EXPECT_EQ(stopped->group, child);
  EXPECT_EQ(remains->start_ticks, stopped->start_ticks);
  EXPECT_FALSE(remains->runs());
  EXPECT_FALSE(process_stat(child).has_value());
}

TEST(ProcessStat, ATextThatEndsEarlyIsNone) {
  const std::string whole = "7 (a) b) S 3 5 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
  const auto stat = stat_from(whole);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 3);
  EXPECT_EQ(stat->group, 5);
  EXPECT_EQ(stat->start_ticks, 987654U);
  for (std::size_t size = 0; size <= whole.find(" 987654"); ++size) EXPECT_FALSE(stat_from(whole.substr(0, size)));
}

TEST(ProcessorTimesOf, AreOfAProcessThatRunsAndOfThisThread) {
  const auto own = processor_times(0);
  if (!own) GTEST_SKIP() << "this kernel does not tell";
  EXPECT_GE(processor_times(0)->waited, own->waited);
  EXPECT_GE(processor_times(0)->ran, own->ran);
  EXPECT_TRUE(processor_times(::getpid()).has_value());
  EXPECT_FALSE(processor_times(1 << 30).has_value());
}

}  // namespace
}  // namespace syslab
