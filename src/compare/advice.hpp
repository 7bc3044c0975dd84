// Behind a verdict `unclear`, or ahead of one: what would make it clear.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "verdict/judgement.hpp"

namespace syslab::cli {

// More wants to run than there are processors: then a call's time holds what it has waited.
struct Crowd {
  double load = 0;     // of the last minute, of the whole machine, which processes in other containers make, too
  int processors = 1;  // of the whole machine, whichever this process may use
};
std::optional<Crowd> crowd();  // now; nothing: there is none

// A note before anything is measured.
std::string busy_text(const Crowd& crowd);

// Of fewer launches the scatter is not even known to a factor of two (stats::spread_range): nothing is foretold of
// them.
constexpr int kFewestForForecast = 5;

// What an interval of a log ratio leaves open.
struct Doubt {
  double half_width = 0;     // of the interval
  double confidence = 0.95;  // of the interval
  double beside = 0;         // how far its middle is from the border that it has to leave
  double at_rest = 0;        // the same if there is no difference, where the interval has that; 0: it has not
  int launches = 0;          // of each case, so far
  double seconds = 0;        // that a launch of each case takes
};

// What would make it clear, in a sentence: a range of launches, as far as the scatter of these is known; at least so
// many, where the ratio is on the border as far as these know; or more launches first, where these are too few for a
// forecast. Where others wanted the machine, that they must end first, and no number: these launches measured them,
// too.
std::string what_would_do(const Doubt& doubt, const std::optional<Crowd>& crowd);

// The same after a comparison, or with what --delta these launches do. Empty where the verdict is another, or has no
// interval. `launch_seconds`: what each launch took.
std::string what_would_do(const verdict::Judgement& judgement, std::span<const double> launch_seconds,
                          const std::optional<Crowd>& crowd);

// What is left of a comparison that has begun.
struct Ahead {
  int launches = 0;               // a side, that there will be in all
  double seconds_per_launch = 0;  // on the wall
  std::optional<double> border;   // a claim's, of log(B / A); nothing: ±log(1 + δ)
};

// A line: the launches that there will be are too few for δ (or the claim's border) at the noise of those that were
// made, what size they tell, how many --launches it takes at least, or the --delta that would do. Empty where they may
// do, and where no launch is to come. The noise is taken for the least that these launches make likely (of one or two:
// that of their blocks alone), the ratio for what is easier to tell, no change or the one so far; so what is told is
// seldom wrong, and asked again after each launch.
std::string what_will_not_do(std::span<const stats::PairedBlock> blocks, double delta, const Ahead& ahead);

}  // namespace syslab::cli
