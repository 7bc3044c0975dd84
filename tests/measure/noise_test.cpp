// Known noise in, known labels and error rates out: the nearest measurer on a device whose distribution is ours to
// choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "measure/burst.hpp"
#include "stats/noise.hpp"
#include "stats/paired.hpp"
#include "stats/summary.hpp"
#include "tests/measure/fake_device.hpp"

namespace syslab::measure {
namespace {

using std::chrono::milliseconds;

Nanoseconds nearest(double nanoseconds) { return Nanoseconds(std::llround(nanoseconds)); }

bool has(const Samples& samples, const std::string& label) {
  const std::vector<std::string> labels = stats::noise_labels(samples.seconds);
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Never satisfied early: the labels get as many samples as they are given.
Protocol exactly(int samples) {
  Protocol protocol;
  protocol.min_samples = protocol.max_samples = samples;
  protocol.precision = 0;
  protocol.warmup_time = milliseconds(5);
  protocol.warmup_until_steady = false;
  return protocol;
}

TEST(Noise, WhiteNoiseHasNoLabel) {
  int labelled = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    FakeLab fake;
    std::mt19937 generator(seed);
    std::normal_distribution<double> noise(1e6, 1e4);
    fake.duration = [&](int) { return nearest(noise(generator)); };
    if (!stats::noise_labels(fake.take(exactly(100)).seconds).empty()) ++labelled;
  }
  EXPECT_LE(labelled, 5);
}

TEST(Noise, DriftInDriftingOut) {
  FakeLab fake;
  std::mt19937 generator(1);
  std::normal_distribution<double> noise(0, 2e3);
  fake.duration = [&](int call) { return nearest(1e6 + 300.0 * call + noise(generator)); };  // 3 % over 100 samples
  const Samples samples = fake.take(exactly(100));
  EXPECT_TRUE(has(samples, "drifting"));
  EXPECT_FALSE(has(samples, "bimodal"));
}

TEST(Noise, TwoModesInBimodalOut) {
  FakeLab fake;
  std::mt19937 generator(2);
  std::normal_distribution<double> noise(0, 2e3);
  std::bernoulli_distribution slow(0.4);
  fake.duration = [&](int) { return nearest((slow(generator) ? 1.3e6 : 1e6) + noise(generator)); };
  const Samples samples = fake.take(exactly(100));
  EXPECT_TRUE(has(samples, "bimodal"));
  EXPECT_FALSE(has(samples, "drifting"));
}

TEST(Noise, SamplesThatHangTogetherAreAutocorrelated) {
  FakeLab fake;
  std::mt19937 generator(3);
  std::normal_distribution<double> noise(0, 1);
  double state = 0;
  fake.duration = [&](int) {
    state = 0.9 * state + noise(generator);
    return nearest(1e6 + 5e3 * state);
  };
  EXPECT_TRUE(has(fake.take(exactly(400)), "autocorrelated"));
}

TEST(Noise, AFixedCountOfFiveIsFewSamples) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  const Samples samples = fake.take(exactly(5));
  EXPECT_EQ(samples.stop, "count");
  EXPECT_TRUE(has(samples, "few_samples"));
}

// Looking several times and stopping at a lucky narrow interval costs coverage; geometric looks keep the cost small.
TEST(Noise, TheMediansIntervalCoversTheTruthThoughTheStopRuleLooks) {
  constexpr int kTrials = 1000;
  int covered = 0;
  for (unsigned seed = 0; seed < kTrials; ++seed) {
    FakeLab fake;
    std::mt19937 generator(seed);
    std::normal_distribution<double> noise(1e6, 2e4);
    fake.duration = [&](int) { return nearest(noise(generator)); };
    Protocol protocol;
    protocol.warmup_time = milliseconds(5);
    protocol.warmup_until_steady = false;
    const Samples samples = fake.take(protocol);
    EXPECT_EQ(samples.stop, "precision");
    const stats::Interval interval = stats::summarize(samples.seconds).median_95;
    if (interval.low <= 1e-3 && 1e-3 <= interval.high) ++covered;
  }
  EXPECT_GE(covered, kTrials * 92 / 100);
}

// Identical code on both sides, every launch a little different from the others, the machine slowing down by 2 % and
// each second burst of a pair by 0.3 %: called different by the 95 % interval in about 5 % of trials, at most 7 %.
TEST(Noise, IdenticalCodeIsCalledDifferentInAtMostSevenPercentOfAThousandTrials) {
  constexpr int kTrials = 1000, kLaunches = 6, kBlocks = 2;
  Protocol protocol = exactly(20);
  protocol.verify_share = 0;
  int different = 0;
  for (unsigned seed = 0; seed < kTrials; ++seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> unit(0, 1);
    std::vector<stats::PairedBlock> blocks;
    for (int launch = 0; launch < kLaunches; ++launch) {
      FakeLab a, b;
      double slowdown = 1 + 0.02 * launch / kLaunches;
      const auto noisy = [&](double life) {
        return [&, life](int) { return nearest(1e6 * slowdown * (life + 0.01 * unit(generator))); };
      };
      a.duration = noisy(1 + 0.005 * unit(generator));
      b.duration = noisy(1 + 0.005 * unit(generator));
      const Subject subject_a = a.subject(), subject_b = b.subject();
      Burst burst_a(protocol, subject_a, a.device, a.clock, seed, milliseconds(4));
      Burst burst_b(protocol, subject_b, b.device, b.clock, seed, milliseconds(4));
      for (int block = 0; block < kBlocks; ++block) {
        const auto log_of = [&](Burst& burst, bool second) {
          slowdown += second ? 0.003 : 0;
          const double result = std::log(burst.take().seconds_per_call);
          slowdown -= second ? 0.003 : 0;
          return result;
        };
        const double a1 = log_of(burst_a, false), b1 = log_of(burst_b, true);
        const double b2 = log_of(burst_b, false), a2 = log_of(burst_a, true);
        blocks.push_back({.launch = launch, .log_ratio = (b1 + b2 - a1 - a2) / 2});
      }
    }
    const stats::Interval interval = stats::paired_estimate(blocks).interval_95;
    if (interval.low > 0 || interval.high < 0) ++different;
  }
  EXPECT_LE(different, kTrials * 7 / 100);
  EXPECT_GE(different, kTrials * 3 / 100) << "an interval that never errs is too wide to be one of 95 %";
}

}  // namespace
}  // namespace syslab::measure
