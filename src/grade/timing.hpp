// How fast what was handed in is beside a rung of the lab's own, timed in turns in one run (`compare`), and what that
// earns. Only code whose results are right is timed: `compare` checks both sides first.
#pragma once

#include <optional>
#include <string>

#include "core/text/json.hpp"
#include "grade/rubric.hpp"

namespace syslab::grade {

// By how much a machine may scatter a ratio whose sides are measured in turns, from one pair of fresh processes to the
// next: a standard deviation. Twice the most that neighbours made of it (reports/ledger/lab.md, "Comparisons on
// trial": a half-width of 2.9 % over 12 to 20 launches is 5 %; as bursts are now, 1 %).
inline constexpr double kScatter = 0.1;

// How far above the truth that scatter puts the mean of so many launches at most, at 95 %: 1.13 with five. So far an
// interval excuses a ratio. One that is wider is the submission's own doing: else whoever is noisy wins.
double most_doubt(int launches);

// Times of the submission over those of the reference: 2 is half as fast. 95 % interval.
struct Timing {
  double ratio = 0, low = 0, high = 0;
  double seconds = 0, reference_seconds = 0;  // medians
  int launches = 5;                           // that were asked for
  double least() const;                       // that the ratio may be: `low`, as far as doubt goes
};

// What of a timed item is measured, apart from what it earns: "flash_forward of f beside naive at seq=512".
std::string timing_name(const Item& item);

// What `compare --json` printed, with the reference as its side A, in the form that a record holds: the numbers;
// {"wrong": true, "why": "…", "told": "…"}; or not_timed().
Json read_comparison(const std::string& output);

// {"why": "it could not be timed", "told": "…"}: `told` may quote the submission.
Json not_timed(const std::string& told);

// record["timings"][timing_name(item)]; nothing where it was not timed.
std::optional<Timing> timing_of(const Item& item, const Json& record);

// Whether an entry says something about the submission, not about the machine: it was timed, or it is wrong.
bool is_settled(const Json& entry);

// What could be neither timed nor found wrong is open. A ratio of `within` is kept where least() does not lie above it:
// the doubt is the student's gain, but not without end.
ItemScore score_timing(const Item& item, const Json& record);

// "1.31 times the time of naive (1.2 … 1.42)".
std::string to_string(const Timing& timing, const Item& item);

}  // namespace syslab::grade
