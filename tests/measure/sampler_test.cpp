#include "measure/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

#include "core/error.hpp"
#include "stats/summary.hpp"
#include "tests/measure/fake_device.hpp"

namespace syslab::measure {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Nanoseconds whole(double nanoseconds) { return Nanoseconds(static_cast<std::int64_t>(nanoseconds)); }

double median(const Samples& samples) { return stats::summarize(samples.seconds).median; }

TEST(Sampler, StopsForPrecisionAtTheFirstLookWhenNothingVaries) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  const Samples samples = fake.take();
  EXPECT_EQ(samples.stop, "precision");
  EXPECT_EQ(samples.seconds.size(), 20U);
  EXPECT_EQ(samples.calls_per_sample, 1);
  EXPECT_DOUBLE_EQ(median(samples), 1e-3);
  EXPECT_EQ(samples.precision, 0.0);
}

TEST(Sampler, FindsTheMedianOfASkewedDistribution) {
  FakeLab fake;
  std::mt19937 generator(3);
  std::exponential_distribution<double> tail(1.0);
  // 1 ms plus an exponential tail of mean 0.05 ms: median 1 ms + 0.05 ms · ln 2, mean 1.05 ms.
  fake.duration = [&](int) { return whole(1e6 + 5e4 * tail(generator)); };
  Protocol protocol;
  protocol.device_budget = protocol.wall_budget = seconds(100);
  const Samples samples = fake.take(protocol);
  EXPECT_EQ(samples.stop, "precision");
  EXPECT_LE(samples.precision, 0.005);
  EXPECT_NEAR(median(samples), 1.03466e-3, 0.005 * 1.03466e-3);
}

TEST(Sampler, LooksOnlyAtGeometricallyGrowingCounts) {
  std::set<std::size_t> counts;
  for (unsigned seed = 0; seed < 40; ++seed) {
    FakeLab fake;
    std::mt19937 generator(seed);
    std::normal_distribution<double> noise(1e6, 3e4);
    fake.duration = [&](int) { return whole(noise(generator)); };
    const Samples samples = fake.take();
    if (samples.stop == "precision") counts.insert(samples.seconds.size());
  }
  const std::set<std::size_t> looks{20, 30, 45, 68, 102, 153, 230, 345, 518, 777, 1166, 1749};
  EXPECT_GE(counts.size(), 3U);
  EXPECT_TRUE(std::includes(looks.begin(), looks.end(), counts.begin(), counts.end()));
}

TEST(Sampler, StopsWhenTheDeviceBudgetIsSpent) {
  FakeLab fake;
  std::mt19937 generator(5);
  std::uniform_real_distribution<double> wild(5e7, 1.5e8);  // ±50 %: 0.5 % is out of reach
  fake.duration = [&](int) { return whole(wild(generator)); };
  const Samples samples = fake.take();
  EXPECT_EQ(samples.stop, "device_budget");
  EXPECT_GT(samples.precision, 0.005);
  EXPECT_NEAR(static_cast<double>(samples.seconds.size()), 30, 4);
}

TEST(Sampler, StopsAtTheWallClockWhenRefreshingIsSlow) {
  FakeLab fake;
  fake.duration = [](int call) { return milliseconds(call % 2 == 0 ? 1 : 2); };
  fake.refresh_cost = milliseconds(500);
  const Samples samples = fake.take();
  EXPECT_EQ(samples.stop, "wall_budget");
  EXPECT_NEAR(static_cast<double>(samples.seconds.size()), 20, 1);
}

TEST(Sampler, StopsAtTheLargestNumberOfSamples) {
  FakeLab fake;
  fake.duration = [](int call) { return microseconds(call % 2 == 0 ? 300 : 600); };
  Protocol protocol;
  protocol.max_samples = 50;
  const Samples samples = fake.take(protocol);
  EXPECT_EQ(samples.stop, "max_samples");
  EXPECT_EQ(samples.seconds.size(), 50U);
}

TEST(Sampler, TakesOneSampleOfACallLongerThanTheBudget) {
  FakeLab fake;
  fake.duration = [](int) { return seconds(20); };
  const Samples samples = fake.take();
  EXPECT_EQ(samples.warmup_calls, 1);
  EXPECT_EQ(samples.seconds.size(), 1U);
  EXPECT_EQ(samples.stop, "device_budget");
  EXPECT_EQ(samples.verified, 1);
}

TEST(Sampler, GroupsShortCallsAndReportsTimePerCall) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(30); };
  const Samples samples = fake.take();
  EXPECT_EQ(samples.calls_per_sample, 7);  // ceil(200 / 30)
  EXPECT_DOUBLE_EQ(median(samples), 30e-6);
}

TEST(Sampler, BoundsTheGroupWhenACallTakesNoMeasurableTime) {
  FakeLab fake;
  fake.duration = [](int) { return Nanoseconds(0); };
  Protocol protocol;
  protocol.warmup_time = Nanoseconds(0);
  protocol.warmup_until_steady = false;
  protocol.max_samples = 2;
  EXPECT_EQ(fake.take(protocol).calls_per_sample, 1 << 16);
}

TEST(Sampler, WarmsUpUntilCallsAreSteady) {
  FakeLab fake;
  // Forty calls that get faster by 5 % each, then steady: clocks ramping up.
  fake.duration = [](int call) { return whole(1e7 * std::max(std::pow(0.95, call), std::pow(0.95, 40))); };
  const Samples samples = fake.take();
  EXPECT_GE(samples.warmup_calls, 40);
  EXPECT_LT(samples.warmup_calls, 70);
  EXPECT_EQ(*std::max_element(samples.seconds.begin(), samples.seconds.end()), median(samples));
  ASSERT_EQ(samples.warmup_seconds.size(), static_cast<std::size_t>(samples.warmup_calls));
  EXPECT_DOUBLE_EQ(samples.warmup_seconds[0], 10e-3);
  EXPECT_DOUBLE_EQ(samples.warmup_seconds[1], 9.5e-3) << "every call in order, not one is left out";
}

TEST(Sampler, KeepsTheFirstCallsOfALongWarmUp) {
  FakeLab fake;
  fake.duration = [](int call) { return microseconds(call == 0 ? 700 : 10); };
  const Samples samples = fake.take();
  EXPECT_GT(samples.warmup_calls, 10'000);
  ASSERT_EQ(samples.warmup_seconds.size(), 200U);
  EXPECT_DOUBLE_EQ(samples.warmup_seconds.front(), 700e-6);
  EXPECT_DOUBLE_EQ(samples.warmup_seconds.back(), 10e-6);
}

TEST(Sampler, TakesTheVeryFirstCallAsASampleWhereNoWarmUpIsWanted) {
  FakeLab fake;
  fake.duration = [](int call) { return milliseconds(call == 0 ? 100 : 1); };
  Protocol protocol = find_protocol("cs336");
  protocol.warmup_calls = 0;
  const Samples samples = fake.take(protocol);
  EXPECT_EQ(samples.warmup_calls, 0);
  EXPECT_TRUE(samples.warmup_seconds.empty());
  ASSERT_EQ(samples.seconds.size(), 10U);
  EXPECT_DOUBLE_EQ(samples.seconds.front(), 0.1);

  FakeLab twice;
  twice.duration = fake.duration;
  protocol.warmup_calls = 2;
  EXPECT_EQ(twice.take(protocol).warmup_calls, 2) << "two, and no more";
}

TEST(Sampler, GivesUpWarmingAtTheLimit) {
  FakeLab fake;
  fake.duration = [](int call) { return milliseconds(1 + call); };  // ever slower
  const Samples samples = fake.take();
  EXPECT_NEAR(static_cast<double>(samples.warmup_calls), 63, 1);  // Σ(1…63) ms is 2.016 s
}

TEST(Sampler, RotatesOverAllSetsAndRefreshesEachBeforeItsNextUse) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(90); };  // three calls a sample
  Protocol protocol;
  protocol.verify_share = 0;
  fake.take(protocol, 5);
  std::map<int, bool> fresh{{0, true}, {1, true}, {2, true}, {3, true}, {4, true}};
  int expected = 0;
  for (const std::string& event : fake.events) {
    const int set = event.back() - '0';
    if (event.starts_with("call")) {
      EXPECT_EQ(set, expected) << "sets come round in order";
      EXPECT_TRUE(fresh[set]) << "set " << set << " was called twice on the same content";
      expected = (expected + 1) % 5;
      fresh[set] = false;
    } else if (event.starts_with("refresh")) {
      fresh[set] = true;
    }
  }
}

TEST(Sampler, VerifiesOutsideTheWindowBeforeTheContentChanges) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  fake.verify_cost = seconds(1);
  fake.refresh_cost = milliseconds(3);
  Protocol protocol;
  protocol.verify_share = 1.0;
  const Samples samples = fake.take(protocol, 3);
  EXPECT_EQ(samples.verified, static_cast<std::int64_t>(samples.seconds.size()));
  EXPECT_EQ(samples.stop, "precision") << "twenty seconds of verification are nobody's budget";
  EXPECT_DOUBLE_EQ(median(samples), 1e-3);
  std::map<std::string, std::string> last;  // set → what was last done to it
  for (const std::string& event : fake.events) {
    const std::string kind = event.substr(0, event.find(' '));
    const std::string set = event.substr(event.find(' ') + 1);
    if (kind == "verify") {
      EXPECT_EQ(last[set], "call") << "set " << set;
    }
    last[set] = kind;
  }
}

TEST(Sampler, VerifiesAboutTheShareAskedForAndAtLeastOne) {
  FakeLab many;
  many.duration = [](int call) { return microseconds(call % 2 == 0 ? 300 : 600); };
  const Samples some = many.take();
  ASSERT_EQ(some.seconds.size(), 2000U);
  EXPECT_GT(some.verified, 580);
  EXPECT_LT(some.verified, 760);
  Subject all = many.subject();
  all.verify_share = 1;
  EXPECT_EQ(many.take({}, all).verified, 2000);

  FakeLab few;
  few.duration = [](int) { return milliseconds(1); };
  Protocol never;
  never.verify_share = 0;
  EXPECT_EQ(few.take(never).verified, 1);
}

// An implementation may be right until a slow oracle has no time left, and do nothing from then on.
TEST(Sampler, ASampleOfTheLaterHalfIsVerifiedHoweverSlowTheOracle) {
  FakeLab fake;
  fake.duration = [](int call) { return microseconds(call % 2 == 0 ? 300 : 600); };
  Subject subject = fake.subject();
  int early = 0, late = 0;
  subject.verify = [&](int) { return ++early == 1; };
  subject.verify_anyway = [&](int) { return ++late > 0; };
  EXPECT_EQ(fake.take({}, subject).verified, 2);
  EXPECT_EQ(late, 1);
}

TEST(Sampler, ASlowOracleEndsSamplingOnceThereAreEnough) {
  FakeLab fake;
  fake.duration = [](int call) { return milliseconds(call % 2 == 0 ? 1 : 2); };
  fake.verify_cost = seconds(4);
  Protocol protocol;
  protocol.verify_share = 1;
  const Samples samples = fake.take(protocol);
  EXPECT_EQ(samples.stop, "wall_budget");
  EXPECT_EQ(samples.seconds.size(), 20U) << "not before";
}

TEST(Sampler, CountsOnlyWhatWasReallyVerified) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  Subject subject = fake.subject();
  int asked = 0;
  subject.verify = [&](int) { return ++asked == 3; };
  Protocol protocol;
  protocol.verify_share = 1.0;
  EXPECT_EQ(fake.take(protocol, subject).verified, 1);
}

TEST(Sampler, LeavesWithTheErrorOfAWrongSample) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  Subject subject = fake.subject();
  subject.verify = [](int) -> bool { throw std::runtime_error("wrong"); };
  EXPECT_THROW(fake.take({}, subject), std::runtime_error);
}

TEST(Sampler, BelievesTheClockOfAnImplementationInAnotherProcess) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(5); };  // with transport
  Subject subject = fake.subject();
  subject.self_time = [] { return Nanoseconds(milliseconds(2)); };
  EXPECT_DOUBLE_EQ(median(fake.take({}, subject)), 2e-3);
  subject.self_time = [] { return Nanoseconds(microseconds(50)); };
  const Samples grouped = fake.take({}, subject);
  EXPECT_EQ(grouped.calls_per_sample, 6) << "at most; four reach the floor, and nobody knows how many it will be";
  EXPECT_DOUBLE_EQ(median(grouped), 50e-6);
}

TEST(Sampler, TellsHowFarItIs) {
  FakeLab fake;
  fake.duration = [](int call) { return milliseconds(call % 2 == 0 ? 10 : 20); };
  std::vector<double> fractions;
  std::string text;
  take_samples({}, fake.subject(), {fake.device, fake.clock, fake.clock}, 1,
               [&](double fraction, const std::string& said) {
                 fractions.push_back(fraction);
                 text = said;
               });
  ASSERT_GE(fractions.size(), 3U);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_LE(fractions.back(), 1.0);
  EXPECT_NE(text.find("% of 0.50 % wanted"), std::string::npos) << text;
}

TEST(Sampler, IsTheSameAgainForTheSameSeed) {
  const auto events = [] {
    FakeLab fake;
    fake.duration = [](int call) { return microseconds(300 + call % 3); };
    fake.take({}, 4);
    return fake.events;
  };
  EXPECT_EQ(events(), events());
}

TEST(SteadyClock, NeverGoesBack) {
  Nanoseconds last = steady_clock().now();
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds now = steady_clock().now();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace syslab::measure
