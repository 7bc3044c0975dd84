#include "worker/judged/call_clock.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/expect_contains.hpp"

namespace syslab::worker {
namespace {

using namespace std::chrono_literals;

TEST(CallClock, TheWorkersReadingIsTakenWithinTwoPercentOfOurs) {
  CallClock clock;
  EXPECT_EQ(clock.time("f", {.ours = 10ms, .its_own = 9'900us}), 9'900us);
  EXPECT_EQ(clock.time("f", {.ours = 10ms, .its_own = 9'700us}), 10ms);
  EXPECT_EQ(clock.time("f", {.ours = 10ms, .its_own = 0ns}), 10ms);
  EXPECT_EQ(clock.facts().at("calls_timed"), 3);
  EXPECT_EQ(clock.facts().at("calls_timed_by_its_own_clock"), 1);
}

TEST(CallClock, TellsHowManyCallsHaveTheHandingOverInTheirTime) {
  CallClock clock;
  clock.time("f", {.ours = 20us, .its_own = 5us});
  EXPECT_TRUE(clock.by_ours());
  clock.take_empty(12us, false);
  clock.take_empty(15us, true);
  for (int i = 0; i < 3; ++i) clock.time("f", {.ours = 10ms, .its_own = 9'900us});
  EXPECT_FALSE(clock.by_ours());
  const measure::Handover told = clock.handover();
  EXPECT_EQ(told.plain, std::vector<double>{12e-6});
  EXPECT_EQ(told.with_results, std::vector<double>{15e-6});
  EXPECT_DOUBLE_EQ(told.share_of_calls, 0.25);
  clock.begin_case();
  EXPECT_TRUE(clock.handover().plain.empty());
}

TEST(CallClock, AClockThatLeavesMostOutOfEveryCallIsSuspect) {
  CallClock clock;
  for (int i = 0; i < 20; ++i) clock.time("f", {.ours = 20ms, .its_own = 1us, .worked = 19ms});
  expect_contains(clock.facts().at("suspect").get<std::string>(),
                  "its own clock tells of 1.00 us a call, the lab's of 20.0 ms");
}

TEST(CallClock, QuestionsBetweenThemHideNothing) {
  CallClock clock;
  for (int i = 0; i < 20; ++i) {
    clock.time("f", {.ours = 20ms, .its_own = 1us, .worked = 19ms});
    EXPECT_EQ(clock.time("f_workspace", {.ours = 10us, .its_own = 9us, .worked = 9us}, true), 10us);
  }
  EXPECT_TRUE(clock.facts().contains("suspect"));
  EXPECT_EQ(clock.facts().at("calls_timed"), 20);
}

TEST(CallClock, WaitsOnABusyMachineAreNot) {
  CallClock clock;
  for (int i = 0; i < 20; ++i) clock.time("f", {.ours = 4ms, .its_own = 100us, .worked = 120us});
  EXPECT_FALSE(clock.facts().contains("suspect"));
}

TEST(CallClock, ThreadsThatWaitForEachOthersProcessorAreNot) {
  CallClock clock(4);
  for (int i = 0; i < 20; ++i) clock.time("f", {.ours = 20ms, .its_own = 5ms, .worked = 19ms});
  EXPECT_FALSE(clock.facts().contains("suspect"));
}

TEST(CallClock, OnAGpuFiveMicrosecondsMoreDoNotMatter) {
  CallClock clock = CallClock::of_gpu();
  EXPECT_EQ(clock.time("f", {.ours = 24us, .its_own = 20us}), 20us);
  EXPECT_EQ(clock.time("f", {.ours = 18us, .its_own = 20us}), 20us);  // handing over was subtracted: it may be shorter
  EXPECT_EQ(clock.time("f", {.ours = 20us, .its_own = 160us}), 20us);
  EXPECT_EQ(clock.time("g", {.ours = 26us, .its_own = 20us}), 26us);
  EXPECT_EQ(clock.time("h", {.ours = 1'024us, .its_own = 1'000us}), 1'000us);
  EXPECT_EQ(clock.time("i", {.ours = 1'026us, .its_own = 1'000us}), 1'026us);
  EXPECT_EQ(CallClock().time("f", {.ours = 24us, .its_own = 20us}), 24us);
}

TEST(CallClock, OnAGpuWhatIsLeftOutOfEveryCallIsSuspect) {
  CallClock clock = CallClock::of_gpu();
  for (int i = 0; i < 20; ++i) clock.time("f", {.ours = 1'000us, .its_own = 900us});
  expect_contains(clock.facts().at("suspect").get<std::string>(), "its own clock tells of 900 us a call, the lab's of");
  CallClock honest = CallClock::of_gpu();
  for (int i = 0; i < 20; ++i) honest.time("f", {.ours = 1'000us, .its_own = 980us});
  EXPECT_FALSE(honest.facts().contains("suspect"));
}

TEST(CallClock, WhereOursHasCopiesInItWhatItDoesNotConfirmIsSuspect) {
  CallClock clock = CallClock::of_copies();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(clock.time("f", {.ours = 1'030us, .its_own = 1'000us}), 1'030us);
  expect_contains(clock.facts().at("suspect").get<std::string>(),
                  "its own clock tells of 1.00 ms a call, the lab's of 1.03 ms with copies to the GPU and back");
  CallClock honest = CallClock::of_copies();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(honest.time("f", {.ours = 102ms, .its_own = 100ms}), 100ms);
  EXPECT_FALSE(honest.facts().contains("suspect"));
}

TEST(CallClock, WhereOursHasCopiesInItATenthOfTheCallsMayBeDisturbed) {
  for (const int disturbed : {2, 3}) {
    CallClock clock = CallClock::of_copies();
    for (int i = 0; i < 20; ++i) clock.time("f", {.ours = i < disturbed ? 130ms : 101ms, .its_own = 100ms});
    EXPECT_EQ(clock.facts().contains("suspect"), disturbed == 3);
  }
}

TEST(CallClock, OnAGpuHandingOverMuchMemoryIsNoSuspicion) {
  CallClock honest = CallClock::of_gpu();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(honest.time("f", {.ours = 339us, .its_own = 321us}), 339us);
  EXPECT_FALSE(honest.facts().contains("suspect"));
  CallClock forged = CallClock::of_gpu();
  for (int i = 0; i < 20; ++i) forged.time("f", {.ours = 339us, .its_own = 300us});
  EXPECT_TRUE(forged.facts().contains("suspect"));
}

TEST(CallClock, RanksThatLeaveOutMoreThanTheirMeetingAreSuspectOnAGpuByTheTimeAlone) {
  for (const bool on_gpu : {true, false}) {
    CallClock honest = CallClock::of_ranks(on_gpu, 2), forged = honest;
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(honest.time("step", {.ours = 20ms, .its_own = 19ms, .worked = 40ms}), 20ms);
      EXPECT_EQ(forged.time("step", {.ours = 20ms, .its_own = 10ms, .worked = 40ms}), 20ms);
    }
    EXPECT_FALSE(honest.facts().contains("suspect"));
    expect_contains(forged.facts().at("suspect").get<std::string>(), "tells of 10.0 ms a call, the lab's of 20.0 ms");
  }
  CallClock busy = CallClock::of_ranks(false, 2);  // other programs had the processors
  for (int i = 0; i < 20; ++i) busy.time("step", {.ours = 20ms, .its_own = 10ms, .worked = 20ms});
  EXPECT_FALSE(busy.facts().contains("suspect"));
}

TEST(CallClock, EachCaseBeginsAnew) {
  CallClock clock;
  clock.time("f", {.ours = 20ms, .its_own = 1us});
  clock.begin_case();
  EXPECT_TRUE(clock.facts().empty());
  EXPECT_EQ(clock.last("f"), 20ms);
  EXPECT_EQ(clock.last("g"), 0ns);
}

}  // namespace
}  // namespace syslab::worker
