// How fast what was handed in is beside a rung of the lab's own, timed in turns in one run (`compare`), and what that
// earns. Only code whose results are right is timed: `compare` checks both sides first.
#pragma once

#include <optional>
#include <string>

#include "core/json.hpp"
#include "grade/rubric.hpp"

namespace syslab::grade {

// A wide interval excuses a ratio so far: else whoever is noisy wins.
inline constexpr double kMostDoubt = 1.5;

// Times of the submission over those of the reference: 2 is half as fast. 95 % interval.
struct Timing {
  double ratio = 0, low = 0, high = 0;
  double seconds = 0, reference_seconds = 0;  // medians
};

// What of a timed item is measured, apart from what it earns: "flash_forward of f beside naive at seq=512".
std::string timing_name(const Item& item);

// What `compare --json` printed, with the reference as its side A, in the form that a record holds: the numbers, or
// {"why": "…"} where there are none.
Json read_comparison(const std::string& output);

// record["timings"][timing_name(item)]; nothing where it was not timed.
std::optional<Timing> timing_of(const Item& item, const Json& record);

// Whether an entry says something about the submission, not about the machine: it was timed, or it is wrong there.
bool is_settled(const Json& entry);

// What could be neither timed nor found wrong is open. A ratio of `within` is kept where the interval does not lie
// above it and the measured ratio is at most kMostDoubt times it: the doubt is the student's gain, but not without end.
ItemScore score_timing(const Item& item, const Json& record);

// "1.31 times the time of naive (1.2 … 1.42)".
std::string to_string(const Timing& timing, const Item& item);

}  // namespace syslab::grade
