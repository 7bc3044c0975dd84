// A paired comparison: side A and side B measured in turns, in ABBA blocks, over several fresh launches of both.
//
// What is estimated is log(time of B / time of A). The replicate is the launch (one pair of fresh processes), not the
// block: whatever a process gets for life (addresses, page colours, which core) shifts all its blocks together, so
// blocks of one launch are no independent witnesses (Kalibera & Jones 2013). The interval is therefore Student's t over
// the means of the launches, L − 1 degrees of freedom, whatever the number of blocks in each.
#pragma once

#include <cstdint>
#include <span>

#include "stats/summary.hpp"

namespace syslab::stats {

// One ABBA block: log_ratio = (log B₁ + log B₂ − log A₁ − log A₂) / 2 of its four bursts, seconds or any other unit.
// The order inside a block cancels a linear drift and whatever the second slot of a pair costs.
struct PairedBlock {
  int launch = 0;  // blocks of one launch carry one number; launches need be neither dense nor sorted
  double log_ratio = 0;
};

struct PairedEstimate {
  std::int64_t blocks = 0, launches = 0;
  double log_ratio = 0;       // mean over launches of the launch's mean; B takes exp(log_ratio) times A's time
  Interval interval_95;       // of log_ratio, at the asked confidence; NaN with fewer than two launches
  double standard_error = 0;  // of log_ratio; NaN with fewer than two launches
  double dof = 0;             // launches − 1
  double p_t = 1;             // two-sided, H0: log ratio 0; p_t ≤ 5 % just where the 95 % interval leaves out 0
  double p_value = 1;         // sign-flip over launch means, same H0, without the normal distribution; ≥ 2^(1 − L)
};

// Throws Error(usage) on no block, on a log ratio that is not finite and on a confidence outside (0, 1).
PairedEstimate paired_estimate(std::span<const PairedBlock> blocks, double confidence = 0.95);

// Two-sided p of H0: the values are symmetric about 0. The statistic is |mean|; p is the share of sign patterns whose
// |mean| reaches the observed one. All 2^n patterns are tried up to n = 16; beyond that 65,535 patterns drawn from
// `seed` and the observed one, which keeps p valid and never 0 (Phipson & Smyth 2010). NaN when empty.
double sign_flip_p(std::span<const double> d, std::uint64_t seed);

// p of H0: |log ratio| ≤ log(1 + delta). At most 5 % just where verdict(interval_95, delta) says faster or slower; so
// over a sweep, Benjamini–Hochberg goes over these. NaN with fewer than two launches.
double p_beyond(const PairedEstimate& estimate, double delta);

// When to stop launching. Looks are few and geometric, since looking after each launch stops at the lucky ones.
struct PairedStopRule {
  int first_look = 6;            // launches
  double growth = 1.5;           // looks at 6, 9, 13, 19, …
  int max_launches = 20;         // the last look, whatever the precision
  double precision = 0.0025;     // half-width of the 95 % interval, in log ratio
  double precision_part = 0.05;  // or this part of |log ratio|: a factor of three needs no ±0.25 %
  int blocks_per_launch = 4;     // ABBA blocks: how the rule was tried
};
enum class PairedStop { go_on, precision, max_launches };

// The number of launches at which to look next, having `launches` of them; max_launches once that is reached.
int next_look(const PairedStopRule& rule, int launches);
// Whether to stop, asked after any launch; between looks the answer is go_on.
PairedStop paired_enough(std::span<const PairedBlock> blocks, const PairedStopRule& rule);

}  // namespace syslab::stats
