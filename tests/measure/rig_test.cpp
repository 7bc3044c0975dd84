// What only some devices do: queues, clock rates, graphs; and the protocols that are somebody else's recipe.
#include "measure/rig.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "stats/summary.hpp"
#include "tests/measure/fake_device.hpp"

namespace syslab::measure {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::int64_t count(const FakeLab& fake, const std::string& kind) {
  return std::count_if(fake.events.begin(), fake.events.end(),
                       [&](const std::string& event) { return event.starts_with(kind); });
}

// --- devices that queue ---------------------------------------------------------------------------------------------

TEST(Rig, QueuesBlocksOfSixteenSamplesAndWaitsOnceForEach) {
  FakeLab fake;
  fake.device.block = 64;  // the device would take more than the protocol asks for
  fake.duration = [](int call) { return milliseconds(call % 2 == 0 ? 1 : 2); };
  Protocol protocol;
  protocol.max_samples = 100;
  protocol.precision = 1e-9;
  fake.take(protocol, 32);
  EXPECT_EQ(*std::max_element(fake.device.blocks.begin(), fake.device.blocks.end()), 16);
  // Looks at 20, 30, 45, 68 and the end at 100 cut the blocks.
  const std::vector<int> tail(fake.device.blocks.end() - 8, fake.device.blocks.end());
  EXPECT_EQ(tail, (std::vector{16, 4, 10, 15, 16, 7, 16, 16}));
}

TEST(Rig, WhatAnotherProcessKnowsOfItsDeviceBecomesTheSamples) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  Subject subject = fake.subject();
  subject.self_time = [] { return Nanoseconds(milliseconds(1)); };
  EXPECT_TRUE(fake.take({}, subject).clocks_hz.empty());
  double hertz = 1e9;
  subject.self_state = [&hertz] { return Window{.clock_hz = hertz += 1, .flags = kHot}; };
  const Samples samples = fake.take({}, subject);
  ASSERT_EQ(samples.clocks_hz.size(), samples.seconds.size());
  EXPECT_NEAR(samples.clocks_hz.front(), 1e9, 1e4);
  EXPECT_EQ(samples.flags, std::vector<std::int64_t>(samples.seconds.size(), kHot));
}

TEST(Rig, ABlockEndsAtTheNextLook) {
  FakeLab fake;
  fake.device.block = 16;
  fake.duration = [](int) { return milliseconds(1); };
  const Samples samples = fake.take({}, 32);
  EXPECT_EQ(samples.stop, "precision");
  EXPECT_EQ(samples.seconds.size(), 20U) << "16 and 4, not 32";
}

TEST(Rig, ABlockTakesDifferentSetsSoThatAnySampleCanStillBeVerified) {
  FakeLab fake;
  fake.device.block = 16;
  fake.duration = [](int) { return microseconds(100); };  // two calls a sample
  Protocol protocol;
  protocol.verify_share = 1;
  const Samples samples = fake.take(protocol, 10);
  EXPECT_EQ(samples.verified, 2 * static_cast<std::int64_t>(samples.seconds.size())) << "all calls";
  std::map<std::string, std::string> last;  // set → what was last done to it
  for (const std::string& event : fake.events) {
    const std::string kind = event.substr(0, event.find(' ')), set = event.substr(event.find(' '));
    if (kind == "call") {
      EXPECT_NE(last[set], "call") << "set" << set << " was called twice on the same content";
    }
    if (kind == "verify") {
      EXPECT_EQ(last[set], "call") << "set" << set;
    }
    last[set] = kind;
  }
}

TEST(Rig, ABlockDoesNotRunFarBeyondTheDeviceBudget) {
  FakeLab fake;
  fake.device.block = 16;
  fake.duration = [](int) { return seconds(1); };
  Protocol protocol;
  protocol.precision = 1e-9;
  protocol.warmup_limit = milliseconds(1);
  const Samples samples = fake.take(protocol, 32);
  EXPECT_EQ(samples.stop, "device_budget");
  EXPECT_LE(samples.seconds.size(), 4U);
}

TEST(Rig, ADeviceThatLosesAWindowIsAFaultOfTheTool) {
  class Forgetful final : public Device {
   public:
    std::string name() const override { return "forgetful"; }
    std::uint64_t last_level_cache() const override { return 1; }
    int most_windows() const override { return 1; }
    void queue_window(const std::function<void()>& work) override { work(); }
    std::vector<Window> collect() override { return {}; }
    void synchronize() override {}
    void flush(std::uint64_t) override {}
  };
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  Forgetful device;
  EXPECT_THROW(take_samples({}, fake.subject(), {device, fake.clock, fake.clock}, 1, {}), Error);
}

// --- clock rates ----------------------------------------------------------------------------------------------------

TEST(Rig, FlagsSamplesOfASlowClockAndKeepsThem) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  int window = 0;
  fake.device.clock_rate = [&] { return ++window % 5 == 0 ? 1.90e9 : 2.0e9; };
  const Samples samples = fake.take();
  ASSERT_EQ(samples.flags.size(), samples.seconds.size());
  ASSERT_EQ(samples.clocks_hz.size(), samples.seconds.size());
  for (std::size_t i = 0; i < samples.flags.size(); ++i) {
    EXPECT_EQ(samples.flags[i], samples.clocks_hz[i] < 1.94e9 ? kSlowClock : 0);
  }
  EXPECT_EQ(std::count(samples.flags.begin(), samples.flags.end(), kSlowClock), 4);
}

TEST(Rig, KeepsTheFlagsOfItsWindowsBesideItsOwn) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  int window = 0, flagged = 0;
  fake.device.clock_rate = [&] { return ++window % 5 == 0 ? 1.90e9 : 2.0e9; };
  fake.device.flags = [&] { return ++flagged % 5 == 0 ? kPowerCapped : 0; };
  const Samples samples = fake.take();
  ASSERT_EQ(samples.flags.size(), samples.seconds.size());
  EXPECT_EQ(std::count(samples.flags.begin(), samples.flags.end(), kSlowClock | kPowerCapped), 4);
  EXPECT_EQ(std::count(samples.flags.begin(), samples.flags.end(), 0), static_cast<int>(samples.flags.size()) - 4);
}

TEST(Rig, ASteadyClockAndAnUnknownOneFlagNothing) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  EXPECT_TRUE(fake.take().flags.empty());
  fake.device.clock_rate = [] { return 2.0e9; };
  EXPECT_TRUE(fake.take().flags.empty());
}

// A device that throttles after 0.1 s of work and recovers in a pause.
TEST(Rig, PausesBetweenLooksWhenTheDeviceHasSlowedDown) {
  FakeLab fake;
  double work = 0;
  fake.duration = [&](int call) {
    work += 1;
    return microseconds(call % 2 == 0 ? 1000 : 1500);  // never precise
  };
  fake.device.clock_rate = [&] { return work > 250 && fake.clock.slept.empty() ? 1.5e9 : 2.0e9; };
  Protocol protocol;
  protocol.max_samples = 400;
  const Samples samples = fake.take(protocol);
  EXPECT_EQ(fake.clock.slept, std::vector<Nanoseconds>{protocol.cool_down});
  EXPECT_EQ(samples.pauses, 1);
  EXPECT_EQ(samples.seconds.size(), 400U) << "nothing is thrown away";
  EXPECT_FALSE(samples.flags.empty());
}

TEST(Rig, DoesNotPauseForeverForAPowerCap) {
  FakeLab fake;
  fake.duration = [&](int call) { return microseconds(call % 2 == 0 ? 1000 : 1500); };
  int windows = 0;
  fake.device.clock_rate = [&] { return ++windows > 250 ? 1.5e9 : 2.0e9; };
  const Protocol protocol;
  const Samples samples = fake.take(protocol);
  EXPECT_GE(samples.pauses, 1);
  EXPECT_LE(samples.pauses, protocol.cool_down_limit / protocol.cool_down);
  EXPECT_EQ(samples.stop, "max_samples");
}

// --- warm-up by the clock -------------------------------------------------------------------------------------------

// A card that was idle: calls look steady from the first on, and its clock climbs for 1.2 seconds.
TEST(Rig, WarmsUpUntilTheClockHasStoppedRising) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(500); };
  const auto mhz = [&] {
    return 1000 + static_cast<unsigned>(std::min<std::int64_t>(fake.clock.now().count(), 1'200'000'000) / 1'500'000);
  };
  fake.device.driver_tells = [&] { return GpuState{.sm_mhz = mhz(), .celsius = 40}; };
  const Samples samples = fake.take(Protocol());
  EXPECT_EQ(samples.clock_settled, true);
  EXPECT_GE(samples.warmup_calls, 2400);
  EXPECT_LE(samples.warmup_calls, 2400 + 400);
  EXPECT_EQ(samples.before.sm_mhz, 1800U);
  EXPECT_EQ(samples.after.celsius, 40U);
}

TEST(Rig, SaysThatTheClockHadNotSettled) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(500); };
  fake.device.driver_tells = [&] {
    return GpuState{.sm_mhz = 500 + static_cast<unsigned>(fake.clock.now().count() / 5'000'000)};
  };
  const Samples samples = fake.take(Protocol());
  EXPECT_EQ(samples.clock_settled, false);
  EXPECT_GE(samples.warmup_calls, 3900) << "two seconds, the limit";
}

TEST(Rig, AClockShakenByAPowerCapHasSettled) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(500); };
  int asked = 0;
  fake.device.driver_tells = [&] { return GpuState{.sm_mhz = ++asked % 2 == 0 ? 1400U : 1600U}; };
  const Samples samples = fake.take(Protocol());
  EXPECT_EQ(samples.clock_settled, true);
  EXPECT_LE(samples.warmup_calls, 600);
}

TEST(Rig, NobodyWaitsForAClockThatIsNotTold) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(500); };
  const Samples samples = fake.take(Protocol());
  EXPECT_EQ(samples.clock_settled, std::nullopt);
  EXPECT_LE(samples.warmup_calls, 420);
}

// --- graphs ---------------------------------------------------------------------------------------------------------

TEST(Rig, ReplaysGroupsOfShortCallsAsGraphsWhereItCan) {
  FakeLab fake;
  fake.device.captures = true;
  fake.duration = [](int) { return microseconds(30); };
  const Samples samples = fake.take({}, 21);
  EXPECT_TRUE(samples.graphs);
  EXPECT_EQ(samples.calls_per_sample, 7);
  EXPECT_EQ(fake.device.captured, 3) << "a graph for each group of sets";
  EXPECT_EQ(fake.device.replays, static_cast<int>(samples.seconds.size()));
  EXPECT_DOUBLE_EQ(stats::summarize(samples.seconds).median, 30e-6);
}

TEST(Rig, LeavesFewSetsOutWhenGraphsDoNotDivideThem) {
  FakeLab fake;
  fake.device.captures = true;
  fake.duration = [](int) { return microseconds(30); };
  const Samples samples = fake.take({}, 13);  // one group of at least seven: all thirteen in it
  EXPECT_EQ(samples.calls_per_sample, 13);
  EXPECT_EQ(fake.device.captured, 1);
}

TEST(Rig, LongCallsNeedNoGraphUnlessTheProtocolInsists) {
  FakeLab fake;
  fake.device.captures = true;
  fake.duration = [](int) { return milliseconds(1); };
  EXPECT_FALSE(fake.take().graphs);
  EXPECT_TRUE(fake.take(find_protocol("graph")).graphs);
}

TEST(Rig, FallsBackToDirectCallsWhenTheWorkCannotBeCaptured) {
  FakeLab fake;
  fake.device.captures = true;
  fake.device.capturable = false;
  fake.duration = [](int) { return microseconds(30); };
  const Samples samples = fake.take({}, 21);
  EXPECT_FALSE(samples.graphs);
  EXPECT_EQ(samples.why_not_captured, "the work waits");
  EXPECT_EQ(fake.device.captured, 1) << "asked once";
  try {
    fake.take(find_protocol("graph"), 21);
    FAIL() << "timed without a graph";
  } catch (const Unsupported& reason) {
    EXPECT_NE(std::string(reason.what()).find("the work waits"), std::string::npos) << reason.what();
  }
}

TEST(Rig, AGraphOfAnImplementationInAnotherProcessIsUnsupported) {
  FakeLab fake;
  fake.device.captures = true;
  fake.duration = [](int) { return milliseconds(1); };
  Subject subject = fake.subject();
  subject.self_time = [] { return Nanoseconds(milliseconds(1)); };
  EXPECT_THROW(fake.take(find_protocol("graph"), subject), Unsupported);
}

// --- implementations in another process -----------------------------------------------------------------------------

TEST(Rig, GroupsOfAnImplementationInAnotherProcessHaveRandomLengths) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(30); };
  Protocol protocol;
  protocol.precision = 1e-12;
  protocol.max_samples = 60;
  Subject subject = fake.subject(64);
  int called = 0;
  std::map<int, int> lengths;
  const std::function<void(int)> call = subject.call, refresh = subject.refresh;
  subject.call = [&](int set) { ++called, call(set); };
  subject.self_time = [] { return Nanoseconds(microseconds(30)); };
  Rig rig(protocol, subject, fake.device, fake.clock, 1);
  rig.warm_up();
  for (int i = 0; i < 60; ++i) {
    called = 0;
    const std::vector<Window> windows = rig.time_block(1);
    ASSERT_EQ(windows.size(), 1U);
    EXPECT_EQ(windows[0].calls, called);
    EXPECT_EQ(windows[0].elapsed, called * microseconds(30));
    ++lengths[called];
    rig.refresh();
  }
  EXPECT_GE(lengths.size(), 4U) << "a group's end could be foreseen";
  EXPECT_GE(lengths.begin()->first * microseconds(30), protocol.sample_floor);
}

TEST(Rig, EveryCallOfAnImplementationInAnotherProcessIsLookedAtBeforeTheNext) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(30); };
  Subject subject = fake.subject();
  subject.self_time = [] { return Nanoseconds(microseconds(30)); };
  subject.look = [&](std::span<const int> sets) {
    for (const int set : sets) fake.events.push_back("look " + std::to_string(set));
  };
  const Samples samples = fake.take({}, subject);
  EXPECT_GT(samples.calls_per_sample, 1);
  const auto warm = std::find_if(fake.events.begin(), fake.events.end(),
                                 [](const std::string& event) { return event.starts_with("look"); });
  std::string before = "call";
  for (auto event = warm; event != fake.events.end(); ++event) {
    const std::string kind = event->substr(0, event->find(' '));
    if (kind == "call") {
      EXPECT_EQ(before, "refresh");
    }
    if (kind == "look") {
      EXPECT_EQ(before, "call");
    }
    before = kind;
  }
  const auto looks = count(fake, "look"), calls = count(fake, "call");
  EXPECT_EQ(looks, calls - samples.warmup_calls);
  EXPECT_NEAR(static_cast<double>(samples.verified), static_cast<double>(looks) / 3, static_cast<double>(looks) / 8);
}

// --- content of its own for each call -------------------------------------------------------------------------------

TEST(Rig, CallsOfOneWindowGetAsManySetsAsTheyNeed) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(30); };
  Subject subject = fake.subject();
  int there = 1;
  subject.grow = [&](int wanted) { return there = wanted; };
  std::vector<int> looked;
  subject.look = [&](std::span<const int> sets) { looked.assign(sets.begin(), sets.end()); };
  EXPECT_EQ(fake.take({}, subject).calls_per_sample, 7);
  EXPECT_EQ(there, 7);
  EXPECT_EQ(looked.size(), 7U) << "all calls of the last window";
}

TEST(Rig, WhereThereAreNotAsManySetsFewerCallsShareAWindow) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(30); };
  Subject subject = fake.subject();
  subject.grow = [](int) { return 4; };
  EXPECT_EQ(fake.take({}, subject).calls_per_sample, 4);
}

// --- flushes --------------------------------------------------------------------------------------------------------

TEST(Rig, FlushesBeforeEachSampleOutsideItsWindow) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  fake.device.flush_cost = milliseconds(20);
  Subject subject = fake.subject(3);
  subject.flush_bytes = 1024;
  const Samples samples = fake.take({}, subject);
  EXPECT_DOUBLE_EQ(stats::summarize(samples.seconds).median, 1e-3);
  EXPECT_EQ(count(fake, "flush 1024"), static_cast<std::int64_t>(samples.seconds.size()));
}

TEST(Rig, ASampleAfterAFlushTakesEachSetOnce) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(30); };  // seven would make a sample, but there are three sets
  Subject subject = fake.subject(3);
  subject.flush_bytes = 1024;
  EXPECT_EQ(fake.take({}, subject).calls_per_sample, 3);
}

// --- other people's recipes -----------------------------------------------------------------------------------------

TEST(Cs336, IsFiveStepsOfWarmupAndTenMeasuredOneByOne) {
  FakeLab fake;
  fake.device.block = 16;
  fake.duration = [](int) { return microseconds(10); };
  const Samples samples = fake.take(find_protocol("cs336"));
  EXPECT_EQ(samples.warmup_calls, 5);
  EXPECT_EQ(fake.calls, 15);
  EXPECT_EQ(samples.seconds.size(), 10U);
  EXPECT_EQ(samples.calls_per_sample, 1) << "a step is a step, however short";
  EXPECT_EQ(samples.stop, "count");
  EXPECT_EQ(fake.device.blocks, std::vector<int>(15, 1)) << "synchronised after each";
}

TEST(Cs336, TakesItsTenHoweverLongTheyAre) {
  FakeLab fake;
  fake.duration = [](int) { return std::chrono::minutes(1); };
  EXPECT_EQ(fake.take(find_protocol("cs336")).seconds.size(), 10U);
}

TEST(Cs336, OfAttentionIsTheSameWithAHundredPasses) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(10); };
  const Samples samples = fake.take(find_protocol("cs336_100"));
  EXPECT_EQ(samples.warmup_calls, 5);
  EXPECT_EQ(samples.seconds.size(), 100U);
  EXPECT_EQ(fake.calls, 105);
  EXPECT_EQ(fake.device.blocks, std::vector<int>(105, 1)) << "synchronised after each";
}

TEST(DoBench, DerivesWarmupAndRepeatsFromFiveCallsWithTheirFlushes) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(2); };
  fake.device.flush_cost = milliseconds(3);
  Subject subject = fake.subject();
  subject.flush_bytes = 256'000'000;
  const Samples samples = fake.take(find_protocol("do_bench"), subject);
  EXPECT_EQ(samples.warmup_calls, 1 + 5 + 5);  // the first, the estimate's, 25 ms / (2 + 3) ms
  EXPECT_EQ(samples.warmup_seconds.size(), 1U + 5U) << "those of the estimate are timed together";
  EXPECT_EQ(samples.seconds.size(), 20U);  // 100 ms / (2 + 3) ms
  EXPECT_EQ(samples.stop, "count");
  EXPECT_EQ(count(fake, "flush 256000000"), 5 + 20) << "warm-up has none";
  EXPECT_DOUBLE_EQ(stats::summarize(samples.seconds).median, 2e-3);
}

TEST(DoBench, TakesOneSampleOfALongCall) {
  FakeLab fake;
  fake.duration = [](int) { return seconds(1); };
  EXPECT_EQ(fake.take(find_protocol("do_bench")).seconds.size(), 1U);
}

}  // namespace
}  // namespace syslab::measure
