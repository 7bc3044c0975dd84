// Two sides' times to a verdict, over a sweep, and as an exit code. Pure; words/comparison_words.hpp tells it.
//
//   const Judgement it = judge(turns, /*delta=*/std::nullopt);
//   if (it.verdict == stats::Verdict::slower) …
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/status.hpp"
#include "core/quantity.hpp"
#include "stats/paired.hpp"
#include "stats/timing_warning.hpp"
#include "stats/unpaired.hpp"
#include "stats/verdict.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::verdict {

constexpr int kFewestLaunches = 3;    // a side, for a verdict
constexpr double kSweepLevel = 0.05;  // the largest q value of a difference

// Calls of two sides that were measured in turns.
struct Turns {
  std::vector<stats::PairedBlock> blocks;
  std::array<std::vector<double>, 2> calls;  // seconds of each call, of A and of B
};

// Why a side has no time that may be compared: of 'A', "is wrong: out[3] is 7".
struct AboutSide {
  char side = 'A';
  std::string says;         // "is wrong: out[3] is 7"
  std::string detail = {};  // of these the attempt's own words: "out[3] is 7"
};

// Why a verdict is unclear or incomparable.
enum class Cause {
  none,
  nothing_measured,
  one_launch,      // it gives no interval
  across_borders,  // the interval reaches across a border of delta
  few_launches,    // of measured ones
  few_stored,      // of stored ones
  one_of_many,     // a difference by itself, and none among so many comparisons
  same_code,       // a difference between equal machine code is noise
  interrupted,     // by the user
  out_of_time,     // its budget ended it before it had launches enough
  no_stored_time,  // the pinned run holds too few launches of it
  slower_once,     // slower at first, and not when measured again
  not_confirmed,   // slower at first, and not measured again
  sides,           // what Judgement::sides says
  differing,       // the sides differ in what a ratio may not hide, or nothing was measured for another reason
};
std::string_view to_string(Cause cause);

struct Reason {
  Cause cause = Cause::none;
  stats::Verdict other = stats::Verdict::unclear;  // one_of_many, same_code: by itself; slower_once: measured again
  double log_ratio = 0;                            // slower_once, not_confirmed: at first
  double seconds = 0;                              // out_of_time before a whole launch: when the first was cut
  std::string text{};                              // differing: what; same_code: the digest of the code
};

struct Judgement {
  stats::Verdict verdict = stats::Verdict::unclear;
  Reason reason;                                         // why, where the verdict alone does not tell
  std::vector<AboutSide> sides;                          // of Cause::sides
  std::string note;                                      // one more sentence, which does not change the verdict
  stats::TimingReason code = stats::TimingReason::none;  // of `reason`, where it has one
  std::vector<stats::TimingWarning> warnings;            // to be printed with the verdict
  Quantity quantity;  // of a rate, `seconds_…` are the time of one unit, and ratios those of times
  double delta = 0.01;
  int launches = 0, blocks = 0;                // of two numbers of launches, the smaller
  std::array<int, 2> launches_of_side{};       // of stored values; zeros: in turns, both sides have `launches`
  std::optional<double> seconds_a, seconds_b;  // medians over launches of the launches' medians
  std::optional<double> log_ratio, low, high;  // of log(B / A), 95 %
  std::optional<double> p_value;               // of no change beyond delta
  std::optional<double> q_value;               // the same over the sweep
  std::optional<Status> failed_a, failed_b;    // sides that did not end well
  int tests = 1;                               // comparisons of the sweep that q_value is over

  bool differs() const { return verdict == stats::Verdict::faster || verdict == stats::Verdict::slower; }
};

// `delta`: as asked; nothing takes the default for side A's time, of a rate 1 %, since its unit says nothing about how
// long anything took.
Judgement judge(const Turns& turns, std::optional<double> delta, const Quantity& quantity);
// From launch medians in seconds that were not measured in turns.
Judgement judge_stored(std::span<const double> launches_a, std::span<const double> launches_b,
                       std::optional<double> delta, const Quantity& quantity);
// No ratio is possible: a side failed, or the sides differ in something that a ratio must not hide.
Judgement incomparable(Reason reason);
Reason differing(std::string text);
Judgement incomparable(std::string differing);
Judgement incomparable(std::vector<AboutSide> sides);
// `it` without a verdict, and for want of one no test of a change.
Judgement unclear(Judgement it, Reason reason);

// Benjamini–Hochberg at 5 %: sets q values; a faster or slower with q above 5 % becomes unclear.
void correct_for_sweep(std::span<Judgement* const> sweep);

// Slower twice is slower; anything else the second time makes the first time's `slower` unclear, but for a wrong side,
// which stays wrong.
Judgement confirmed(const Judgement& first, const Judgement& again);
// Slower, but there was no second time.
Judgement not_confirmed(const Judgement& first);

// 1 for a wrong side, 6 slower, 3 for a side that failed otherwise, 5 unclear or incomparable. A skipped or unsupported
// side is no failure; one whose results nothing could judge is unclear.
Exit exit_of(const Judgement& judgement, bool oom_is_an_answer);

// Of passes back, whose forward calls nobody times: the faster side's takes so much more than the other's that it is a
// quarter of what was gained, or more, by the lower end of the 95 % interval over launches. Where the other's is not
// known, that it takes longer than the pass itself.
std::optional<stats::TimingWarning> moved_forward(const Judgement& judgement,
                                                  const std::array<std::vector<double>, 2>& forward_seconds,
                                                  const std::string& a, const std::string& b);

// log(B / A) of the means of all calls, where it is more than delta although the verdict is `same`: the estimate gives
// little weight to calls that are far longer than the rest.
std::optional<double> differing_means(const Judgement& judgement, const Turns& turns);

// log(B / A) of the two times, where it contradicts the ratio: they point apart as people read them, or the times'
// lies outside the interval by a change that counts.
std::optional<double> contradicting_times(const Judgement& judgement);

}  // namespace syslab::verdict
