// What a comparison says, once it has an interval: a word and the rule that leads to it.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stats/summary.hpp"

namespace syslab::stats {

// Of side B, relative to side A. `incomparable`: the sides differ in something that a ratio of times may not hide
// (device, protocol, problem); no number decides that, so verdict() never returns it.
enum class Verdict { faster, slower, same, unclear, incomparable };

std::string_view to_string(Verdict verdict);
std::optional<Verdict> verdict_of(std::string_view word);
Verdict swapped(Verdict verdict);  // of side A, relative to side B

// The interval is of log(time of B / time of A). `delta` ≥ 0 is the smallest change worth a word: 0.01 where one call
// takes 20 µs or more, 0.02 below. With m = log(1 + delta):
//   slower   the interval lies wholly above m       (B takes more than 1.01 × A)
//   faster   wholly below −m                        (A takes more than 1.01 × B)
//   same     wholly inside [−m, m]
//   unclear  it crosses −m or m, or is NaN: no interval could be had
// The margin is log(1 + delta) on both sides, not log(1 ± delta), so that swapping the sides swaps the words.
Verdict verdict(Interval log_ratio_95, double delta);
// 1 %, or 2 % where one call of side A takes less than 20 µs.
double default_delta(double seconds_of_a);

// Benjamini & Hochberg 1995, as adjusted p values in the order given: q_i = min over p_j ≥ p_i of p_j · n / rank(j), at
// most 1. Calling a difference wherever q ≤ 5 % keeps the expected share of false calls among the calls at 5 % or less.
// A NaN stays NaN and is no test: it does not count in n.
std::vector<double> benjamini_hochberg(std::span<const double> p);

}  // namespace syslab::stats
