// The revisions that a bisection measured against the first one cut the history into stretches: what each of them lost,
// and with that what a single commit can have lost. Nothing here measures.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "stats/verdict.hpp"

namespace syslab::cli {

// From one measured revision to the next one.
struct Stretch {
  int from = 0, to = 0;
  stats::Interval bounds;  // of log(time of `to` / time of `from`)

  int commits() const { return to - from; }
};

// `against_first`: intervals of log(time of a revision / time of the first one), by revision; without the first one.
// The bounds are of the two intervals' ends.
std::vector<Stretch> stretches_of(const std::map<int, stats::Interval>& against_first);
// Those between two revisions.
std::vector<Stretch> between(const std::vector<Stretch>& stretches, int from, int to);
// A stretch that was measured by itself is known better.
void replace(std::vector<Stretch>& stretches, const Stretch& measured);

// Whether none lost more than δ, by its bounds: then no commit did, unless a faster one of its stretch made up for it.
bool none_above(const std::vector<Stretch>& stretches, double delta);
// The one that can have lost most, of at least one.
Stretch most_lost(const std::vector<Stretch>& stretches);
// A single commit that lost more than δ by its bounds, and most of those; nothing: there is none.
std::optional<Stretch> surely_above(const std::vector<Stretch>& stretches, double delta);
// The only stretch that can have lost more than δ, if it is a single commit.
std::optional<Stretch> only_candidate(const std::vector<Stretch>& stretches, double delta);

}  // namespace syslab::cli
