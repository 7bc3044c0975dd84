// What a comparison says: from blocks or stored launches to a verdict, over a sweep, as an exit code and in words.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/quantity.hpp"
#include "runner/paired/paired.hpp"
#include "session/exit_code.hpp"
#include "session/no_time.hpp"
#include "stats/paired.hpp"
#include "stats/timing_warning.hpp"
#include "stats/unpaired.hpp"
#include "stats/verdict.hpp"

namespace syslab::cli {

constexpr int kFewestLaunches = 3;  // a side, for a verdict

// Why a side has no time that may be compared: of 'A', "is wrong: out[3] is 7".
struct AboutSide {
  char side = 'A';
  std::string says;         // "is wrong: out[3] is 7"
  std::string detail = {};  // of these the attempt's own words: "out[3] is 7"
};

struct Judgement {
  stats::Verdict verdict = stats::Verdict::unclear;
  std::string reason;                                    // why, where the verdict alone does not tell
  std::vector<AboutSide> sides;                          // what `reason` says, where it speaks of sides
  std::string note;                                      // a sentence beside the verdict, which it does not touch
  stats::TimingReason code = stats::TimingReason::none;  // of `reason`, where it has one
  std::vector<stats::TimingWarning> warnings;            // to be told with the verdict
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
};

std::vector<stats::PairedBlock> for_stats(std::span<const runner::PairedBlock> blocks);

// `delta`: as asked; nothing takes the default for side A's time, of a rate 1 %, since its unit says nothing about how
// long anything took.
Judgement judge(std::span<const runner::PairedBlock> blocks, std::optional<double> delta,
                const Quantity& quantity = {});
// From launch medians in seconds that were not measured in turns.
Judgement judge_stored(std::span<const double> launches_a, std::span<const double> launches_b,
                       std::optional<double> delta, const Quantity& quantity = {});
// No ratio may be told: too much of the time of this side ('A', 'B') is the lab's own.
Judgement under_resolution(char side, const NoTime& why);
// No ratio is possible: a side failed, or the sides differ in something that a ratio must not hide.
Judgement incomparable(std::string reason);
Judgement incomparable(std::vector<AboutSide> sides);

// Benjamini–Hochberg at 5 %: sets q values; a faster or slower with q above 5 % becomes unclear.
void correct_for_sweep(std::span<Judgement* const> sweep);

// 1 for a wrong side, 6 slower, 3 for a side that failed otherwise, 5 unclear or incomparable. A skipped or unsupported
// side is no failure; one whose results nothing could judge is unclear.
Exit exit_of(const Judgement& judgement, bool oom_is_an_answer);

// "−12.3 %", with the sign always and as many digits as a time can bear.
std::string percent(double change);
// Of log(B / A): "−12.3 %"; beyond a factor of three, where percents mislead, "9.53 times" or "1/9.53".
std::string change_text(double log_ratio);
// With so many digits that it compares with the borders of δ as printed: "+1.004 %" where δ is 1 %.
std::string change_text(double log_ratio, double delta);
std::string interval_text(double log_ratio, const stats::Interval& interval, double delta);
// Of log(B / A) of times, in what people read: "33.3 % less time", "9.53 times the time"; of a rate "50.0 % more
// tokens/s", "1/9.53 of the tokens/s".
std::string change_in_words(const Quantity& quantity, double log_ratio);
// Of a judgement's ratio; empty without one. Of a rate that of rates: "+12.3 %" is more per second, which is faster.
std::string change_text(const Judgement& judgement);
std::string interval_text(const Judgement& judgement);  // "−12.9 % … −11.7 %", "9.41 … 9.64 times", "no interval"
// Of an interval that is unclear: "the interval reaches across +1 %", or "… −0.99 % (1/1.01)", or both.
std::string across_borders(const stats::Interval& log_ratio, double delta);

// Of a claim, which says how much faster B is: "1.83 times as fast (1.81 … 1.85)"; empty without a ratio.
std::string speed_text(const Judgement& judgement);

// What came of it in a word: "slower"; of a side that failed "wrong" or its status, and not "incomparable".
std::string word_of(const Judgement& judgement);

// The sides of a comparison with stored values, as tables and sentences call them.
inline constexpr const char* kPinnedSide = "pinned";
inline constexpr const char* kNowSide = "now";

// "6"; "3, 5" if the sides differ.
std::string launches_text(const Judgement& judgement);
// "flash_tiled takes 25.0 % less time than naive (95 %: −25.2 % … −24.8 %), over 6 launches a side."
// If the sides differ, it ends with "over 3 launches of the pin and 5 now."
std::string sentence(const Judgement& judgement, const std::string& a, const std::string& b);

// The reason; where it speaks of sides, in their names: "me is wrong: out[3] is 7".
std::string reason_by_name(const Judgement& judgement, const std::string& a, const std::string& b);

// Of passes back, whose forward calls nobody times: the faster side's takes so much more than the other's that it is a
// quarter of what was gained, or more, by the lower end of the 95 % interval over launches. Where the other's is not
// known, that it takes longer than the pass itself.
std::optional<stats::TimingWarning> moved_forward(const Judgement& judgement,
                                                  const std::array<std::vector<double>, 2>& forward_seconds,
                                                  const std::string& a, const std::string& b);

// Says that the means of all calls differ by more than delta although the verdict is `same`: the estimate gives little
// weight to calls that are far longer than the rest. Otherwise empty.
std::string differing_means(const Judgement& judgement, std::span<const runner::PairedBlock> blocks);

// Why the ratio and the two times contradict each other, if they do: they point apart, or the times' ratio lies outside
// the interval by a change that counts. Otherwise empty.
std::string contradiction(const Judgement& judgement);

}  // namespace syslab::cli
