// A paired comparison: side A and side B measured in turns, in ABBA blocks, over several fresh launches of both.
//
// What is estimated is log(time of B / time of A). The replicate is the launch (one pair of fresh processes), not the
// block: whatever a process gets for life (addresses, page colours, which core) shifts all its blocks together, so
// blocks of one launch are no independent witnesses (Kalibera & Jones 2013). The interval is therefore Student's t over
// the launches' values, L − 1 degrees of freedom, whatever the number of blocks in each.
//
// A launch's value is the midmean of its blocks. On a shared machine one block in ten may meet a neighbour who takes
// half of a core for 10 to 100 ms; what is between A and B is symmetrical there, but its tails are long, and a mean of
// blocks follows every one of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stats/summary.hpp"

namespace syslab::stats {

// One ABBA block: log_ratio = (log B₁ + log B₂ − log A₁ − log A₂) / 2 of its four bursts, seconds or any other unit.
// The order inside a block cancels a linear drift and whatever the second slot of a pair costs.
struct PairedBlock {
  int launch = 0;  // blocks of one launch carry one number; launches need be neither dense nor sorted
  double log_ratio = 0;
};

// The blocks of each launch, and the midmean of each; in the order in which launches first appear.
std::vector<std::vector<double>> blocks_by_launch(std::span<const PairedBlock> blocks);
std::vector<double> launch_means(std::span<const PairedBlock> blocks);

struct PairedEstimate {
  std::int64_t blocks = 0, launches = 0;
  double log_ratio = 0;       // mean over launches of the launch's value; B takes exp(log_ratio) times A's time
  Interval interval_95;       // of log_ratio, at the asked confidence; NaN with fewer than two launches
  double standard_error = 0;  // of log_ratio; NaN with fewer than two launches
  double dof = 0;             // launches − 1
  double p_t = 1;             // two-sided, H0: log ratio 0; p_t ≤ 5 % just where the 95 % interval leaves out 0
  double p_value = 1;         // sign-flip over launches, same H0, without the normal distribution; ≥ 2^(1 − L)
};

// Throws Error(usage) on no block, on a log ratio that is not finite and on a confidence outside (0, 1).
PairedEstimate paired_estimate(std::span<const PairedBlock> blocks, double confidence = 0.95);
// The same without the sign flips, a millisecond cheaper: p_value is NaN.
PairedEstimate paired_interval(std::span<const PairedBlock> blocks, double confidence = 0.95);

// Two-sided p of H0: the values are symmetric about 0. The statistic is |mean|; p is the share of sign patterns with
// a |mean| that reaches the observed one. All 2^n patterns are tried up to n = 16; beyond that 65,535 patterns drawn
// from `seed` and the observed one, which keeps p valid and never 0 (Phipson & Smyth 2010). NaN when empty.
double sign_flip_p(std::span<const double> d, std::uint64_t seed);

// p of H0: |log ratio| ≤ log(1 + delta). At most 5 % just where verdict(interval_95, delta) says faster or slower; so
// over a sweep, Benjamini–Hochberg goes over these. NaN with fewer than two launches.
double p_beyond(const PairedEstimate& estimate, double delta);

// When to stop launching, in two stages after Stein (1945): the spread of the first launches alone fixes how many there
// will be, and nothing is looked at on the way. Looking at the interval again and again (at 6, 9, 13, 20 launches, say)
// stops at the launches that happen to agree: coverage falls to 0.925, and to 0.90 if the first look is at 3.
//
// Tried, 40,000 trials each, normal launches of any spread: with 20 launches at most, first stages of 6, 8, 10, 12 and
// 14 cover at worst 0.926, 0.937, 0.940, 0.943 and 0.945 (at a spread of 0.5 %, where about 17 launches are wanted);
// hence 12. A fixed number, first_look = max_launches, covers 0.95.
//
// The interval is paired_estimate's, from all launches. Stein's original, which keeps the first stage's spread, covers
// exactly 0.95 in theory, but 0.91 (first stage of 10) where one launch in ten is five times as noisy, and 0.90 where
// the noise grows by half after the first stage; this one covers 0.955 and 0.94 there. Pooling blocks and launches
// where an F test finds no launch effect covers 0.96 to 0.97 without such an effect, and no better with one.
// tests/stats/paired_trial.cpp tries the rule as it stands.
struct PairedStopRule {
  int first_look = 12;  // launches of the first stage; the only look
  int max_launches = 20;
  double precision = 0.0025;     // wanted half-width of the 95 % interval, in log ratio
  double precision_part = 0.05;  // or this part of |log ratio|: a factor of three needs no ±0.25 %
  int blocks_per_launch = 16;    // ABBA blocks: how the rule was tried
};
enum class PairedStop { go_on, precision, max_launches };

// How many launches the rule wants in all: first_look until there are as many, from then on one and the same
// number, between first_look and max_launches. Launches count in the order in which they first appear.
int launches_wanted(std::span<const PairedBlock> blocks, const PairedStopRule& rule);
// Whether to stop, asked after any launch. `max_launches`: the limit decided, and the interval may be wider than
// wanted.
PairedStop paired_enough(std::span<const PairedBlock> blocks, const PairedStopRule& rule);

}  // namespace syslab::stats
