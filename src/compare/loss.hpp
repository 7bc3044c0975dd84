// What `bisect` concludes from a pair of revisions that were measured in turns, and says of it. Nothing here measures.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compare/advice.hpp"
#include "compare/bisection.hpp"
#include "compare/turns.hpp"

namespace syslab::cli {

// Of log(time of the later revision / time of the earlier one).
struct Change {
  double log_ratio = 0;
  stats::Interval interval;    // at 99 %
  int launches = 0;            // a side
  double delta = 0.01;         // the smallest loss that counts: as asked, else as `compare` takes it
  double launch_seconds = 0;   // mean
  std::optional<Crowd> crowd;  // that there was when `bisect` began to measure it
  std::optional<verdict::Judgement> failed;
  bool remembered = false;
};

// `seconds_of_earlier`: of one call.
Change change_of(std::span<const stats::PairedBlock> blocks, double seconds_of_earlier,
                 std::optional<double> asked_delta);
Change change_of(const verdict::Turns& turns, std::optional<double> asked_delta);

// Whether a loss of more than δ is confirmed (`compare` and `gate` say slower), confirmed not to be there (the interval
// ends at δ or below it), or neither.
enum class Loss { above, not_above, unclear };
Loss loss_of(const Change& change);
// Whether all of the interval is a gain of more than δ: `compare` says faster.
bool is_gain(const Change& change);

// Of a revision against the first one: has it more than half of what the last one lost? Where one commit made the whole
// loss, half is the border that is easiest to tell. Where several did, the two neighbours that the search ends with lie
// on both sides of it, and loss_of() of these two decides.
Answer answer_of(const Change& change, double half);

// More than nothing and less than the whole, by both intervals: the whole was then made by more than one commit.
bool is_part_of(const Change& change, const Change& whole);

// "+2.96 % (99 %: +2.50 % … +3.40 %)", with so many digits that it compares with δ as printed.
std::string text_of(const Change& change);
// What is not known of whether the change is above `border`, a log ratio.
Doubt doubt_of(const Change& change, double border);
// Why a loss is unclear, and what would tell.
std::string why_unclear(const Change& change);
// Whether what is remembered is measured again: unclear, and made while others wanted the machine, which they no longer
// do.
bool is_spoiled(const Change& remembered, const std::optional<Crowd>& now);
// Of two neighbours of which the later one did not lose more than δ, while the last one lost it against the first.
std::string why_no_single(const Change& neighbours, const Change& whole);
// Of two neighbours of which the later one lost more than δ: a sentence if other commits lost as well. Else empty.
std::string what_else_was_lost(const Change& neighbours, const Change& whole);

}  // namespace syslab::cli
