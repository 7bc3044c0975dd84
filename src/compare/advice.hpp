// Behind a verdict `unclear`, or ahead of one: what would make it clear.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compare/judgement.hpp"

namespace syslab::cli {

// More wants to run than there are processors: then a call's time holds what it has waited.
struct Crowd {
  double load = 0;     // of the last minute, of the whole machine, which processes in other containers make, too
  int processors = 1;  // of the whole machine, whichever this process may use
};
std::optional<Crowd> crowd();  // now; nothing: there is none

// A sentence: so many launches would tell, or with what --delta these do, or that others must end first. Empty where
// the verdict is another, or has no interval. `launch_seconds`: what each launch took.
std::string what_would_do(const Judgement& judgement, std::span<const double> launch_seconds,
                          const std::optional<Crowd>& crowd);

// The same after a claim or a bisection that is unclear: the launches of each case after which its interval will lie on
// one side of its border. `half_width`, `beside`: of the logarithm of the speed, half of the interval and how far its
// middle lies from the border, where that takes most; `launches` so far, of which one of each case takes `seconds`.
std::string what_would_do(double half_width, double beside, int launches, double seconds,
                          const std::optional<Crowd>& crowd);

// What is left of a comparison that has begun.
struct Ahead {
  int launches = 0;               // a side, that there will be in all
  double seconds_per_launch = 0;  // on the wall
  std::optional<double> border;   // a claim's, of log(B / A); nothing: ±log(1 + δ)
};

// A line: the launches that there will be are too few for δ (or the claim's border) at the noise of those that were
// made, what size they tell, and the --launches or --delta that would do. Empty where they may do, and where no
// launch is to come. The noise is taken for the least that these launches make likely (of one or two: that of their
// blocks alone), the ratio for what is easier to tell, no change or the one so far; so what is told is seldom wrong,
// and asked again after each launch.
std::string what_will_not_do(std::span<const stats::PairedBlock> blocks, double delta, const Ahead& ahead);

}  // namespace syslab::cli
