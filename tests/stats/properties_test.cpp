// Laws of src/stats, searched by RapidCheck.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "stats/paired.hpp"
#include "stats/summary.hpp"
#include "stats/unpaired.hpp"
#include "stats/verdict.hpp"

namespace syslab::stats {
namespace {

// Eighths, so that sums are exact and equal values occur.
rc::Gen<double> eighths() {
  return rc::gen::map(rc::gen::inRange(-800, 800), [](int value) { return value / 8.0; });
}

std::vector<PairedBlock> any_blocks() {
  std::vector<PairedBlock> blocks;
  const int launches = *rc::gen::inRange(1, 9);
  for (int launch = 0; launch < launches; ++launch) {
    for (const double value : *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(eighths())))
      blocks.push_back({launch, value / 100});
  }
  return blocks;
}

RC_GTEST_PROP(QuantileProperty, IsTheSortedValueAtEveryWholePosition, ()) {
  auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(eighths()));
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = values.size() == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(values.size() - 1);
    RC_ASSERT(std::abs(quantile(values, p) - values[i]) <= 1e-9);
  }
}

RC_GTEST_PROP(MedianIntervalProperty, MovesAndStretchesWithTheSeries, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(eighths()));
  const Interval interval = median_interval(values);
  std::vector<double> moved = values;
  for (double& value : moved) value = 4 * value + 16;
  const Interval of_moved = median_interval(moved);
  RC_ASSERT(std::abs(of_moved.low - (4 * interval.low + 16)) <= 1e-6);
  RC_ASSERT(std::abs(of_moved.high - (4 * interval.high + 16)) <= 1e-6);
}

RC_GTEST_PROP(PairedProperty, SwappingTheSidesMirrorsEverything, ()) {
  const std::vector<PairedBlock> blocks = any_blocks();
  std::vector<PairedBlock> swapped = blocks;
  for (PairedBlock& block : swapped) block.log_ratio = -block.log_ratio;
  const PairedEstimate estimate = paired_estimate(blocks);
  const PairedEstimate mirror = paired_estimate(swapped);
  RC_ASSERT(mirror.log_ratio == -estimate.log_ratio);
  RC_ASSERT(mirror.p_value == estimate.p_value);
  if (estimate.launches > 1) {
    RC_ASSERT(mirror.interval_95.low == -estimate.interval_95.high);
    RC_ASSERT(mirror.p_t == estimate.p_t);
  }
  const double delta = *rc::gen::inRange(0, 100) / 100.0;
  const Verdict word = verdict(estimate.interval_95, delta);
  const Verdict other = verdict(mirror.interval_95, delta);
  if (word == Verdict::faster) {
    RC_ASSERT(other == Verdict::slower);
  } else if (word == Verdict::slower) {
    RC_ASSERT(other == Verdict::faster);
  } else {
    RC_ASSERT(other == word);
  }
}

RC_GTEST_PROP(PairedProperty, MovesAndStretchesWithTheBlocks, ()) {
  const std::vector<PairedBlock> blocks = any_blocks();
  std::vector<PairedBlock> moved = blocks;
  for (PairedBlock& block : moved) block.log_ratio = 2 * block.log_ratio + 1;
  const PairedEstimate estimate = paired_interval(blocks);
  const PairedEstimate of_moved = paired_interval(moved);
  RC_ASSERT(std::abs(of_moved.log_ratio - (2 * estimate.log_ratio + 1)) <= 1e-9);
  if (estimate.launches > 1) {
    RC_ASSERT(std::abs(of_moved.interval_95.low - (2 * estimate.interval_95.low + 1)) <= 1e-7);
    RC_ASSERT(std::abs(of_moved.interval_95.high - (2 * estimate.interval_95.high + 1)) <= 1e-7);
  }
}

RC_GTEST_PROP(PairedProperty, TheNumbersOfLaunchesAreNamesAlone, ()) {
  const std::vector<PairedBlock> blocks = any_blocks();
  std::vector<PairedBlock> renamed = blocks;
  for (PairedBlock& block : renamed) block.launch = 1000 - 7 * block.launch;
  RC_ASSERT(paired_interval(renamed).log_ratio == paired_interval(blocks).log_ratio);
  RC_ASSERT(launches_wanted(renamed, {}) == launches_wanted(blocks, {}));
}

// The word and the p value of a sweep are one test, not two.
RC_GTEST_PROP(PairedProperty, ACallIsAPValueOfFivePercent, ()) {
  const PairedEstimate estimate = paired_interval(any_blocks());
  RC_PRE(estimate.launches > 1);
  const double delta = *rc::gen::inRange(0, 50) / 100.0;
  const double p = p_beyond(estimate, delta);
  RC_PRE(std::abs(p - 0.05) > 1e-9);
  const Verdict word = verdict(estimate.interval_95, delta);
  RC_ASSERT((word == Verdict::faster || word == Verdict::slower) == (p < 0.05));
}

RC_GTEST_PROP(UnpairedProperty, SwappingTheSidesMirrorsIt, ()) {
  const auto positive = rc::gen::map(rc::gen::inRange(1, 800), [](int value) { return value / 8.0; });
  const auto a = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(positive));
  const auto b = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(positive));
  const UnpairedEstimate estimate = unpaired_estimate(a, b);
  const UnpairedEstimate mirror = unpaired_estimate(b, a);
  RC_ASSERT(mirror.log_ratio == -estimate.log_ratio);
  RC_ASSERT(std::isnan(estimate.interval_95.low) == (a.size() < 3 || b.size() < 3));
  if (!std::isnan(estimate.interval_95.low))
    RC_ASSERT(std::abs(mirror.interval_95.low + estimate.interval_95.high) <= 1e-12);
}

std::vector<double> any_p_values() {
  return *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(0, 1001), [](int value) { return value / 1000.0; })));
}

RC_GTEST_PROP(BenjaminiHochbergProperty, KeepsTheOrderAndOnlyRaises, ()) {
  const std::vector<double> p = any_p_values();
  const std::vector<double> q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    RC_ASSERT(q[i] >= p[i]);
    RC_ASSERT(q[i] <= 1);
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (p[i] <= p[j]) RC_ASSERT(q[i] <= q[j]);
    }
  }
}

RC_GTEST_PROP(BenjaminiHochbergProperty, DoesNotMindTheOrder, ()) {
  const std::vector<double> p = any_p_values();
  std::vector<double> reversed(p.rbegin(), p.rend());
  std::vector<double> q = benjamini_hochberg(reversed);
  std::reverse(q.begin(), q.end());
  RC_ASSERT(q == benjamini_hochberg(p));
}

// The definition, step by step: reject the k smallest for the largest k with p_(k) ≤ k/n · α.
RC_GTEST_PROP(BenjaminiHochbergProperty, RejectsWhatTheStepUpProcedureRejects, ()) {
  const std::vector<double> p = any_p_values();
  const double alpha = 0.0537;  // no multiple of 1/1000 over a rank: no ties of rounding
  std::vector<double> sorted = p;
  std::sort(sorted.begin(), sorted.end());
  double bar = -1;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (sorted[k] * static_cast<double>(sorted.size()) <= static_cast<double>(k + 1) * alpha) bar = sorted[k];
  }
  const std::vector<double> q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < p.size(); ++i) RC_ASSERT((q[i] <= alpha) == (p[i] <= bar));
}

}  // namespace
}  // namespace syslab::stats
