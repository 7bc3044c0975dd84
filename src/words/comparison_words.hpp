// What a comparison says, in words and as JSON.
#pragma once

#include <string>

#include "core/quantity.hpp"
#include "core/text/json.hpp"
#include "stats/summary.hpp"
#include "verdict/judgement.hpp"

namespace syslab::words {

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
// Of an interval that is unclear: "the interval reaches across +1 %", or "… −0.99 % (1/1.01)", or both.
std::string across_borders(const stats::Interval& log_ratio, double delta);

// Of a judgement's ratio; empty without one. Of a rate that of rates: "+12.3 %" is more per second, which is faster.
std::string change_text(const verdict::Judgement& judgement);
// "−12.9 % … −11.7 %", "9.41 … 9.64 times", "no interval"
std::string interval_text(const verdict::Judgement& judgement);
// Of a claim, which says how much faster B is: "1.83 times as fast (1.81 … 1.85)"; empty without a ratio.
std::string speed_text(const verdict::Judgement& judgement);
// What came of it in a word: "slower"; of a side that failed "wrong" or its status, and not "incomparable".
std::string word_of(const verdict::Judgement& judgement);
// "6"; "3, 5" if the sides differ.
std::string launches_text(const verdict::Judgement& judgement);

// The sides of a comparison with stored values, as tables and sentences call them.
inline constexpr const char* kPinnedSide = "pinned";
inline constexpr const char* kNowSide = "now";

// "flash_tiled takes 25.0 % less time than naive (95 %: −25.2 % … −24.8 %), over 6 launches a side."
// If the sides differ, it ends with "over 3 launches of the pin and 5 now."
std::string sentence(const verdict::Judgement& judgement, const std::string& a, const std::string& b);

// Why there is no verdict, or empty; where it speaks of sides, by their names: "me is wrong: out[3] is 7".
std::string reason(const verdict::Judgement& judgement, const std::string& a, const std::string& b);
std::string reason(const verdict::Judgement& judgement);  // "side A is wrong: …"
// As it is stored: without a reason the note.
std::string reason_or_note(const verdict::Judgement& judgement);

// Of verdict::differing_means().
std::string about_means(const Quantity& quantity, double log_ratio);
// Why the ratio and the two times contradict each other, if they do (verdict::contradicting_times). Otherwise empty.
std::string contradiction(const verdict::Judgement& judgement);

// As --json has it. Rates only where the quantity is one.
Json to_json(const verdict::Judgement& judgement);

}  // namespace syslab::words
