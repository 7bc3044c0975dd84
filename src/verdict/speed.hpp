// What measurements make of a claim about speed: one side is at least so many times as fast as the other.
//
// Of each case there are launches of both sides in turns; log(time of slower / time of faster) has an interval by
// Student's t over the launches (stats/paired.hpp). The claim's border is factor × (1 − tolerance).
//
//   in every case       confirmed: the 95 % interval of each case begins at the border or above it. Since all must
//                       hold, no correction is needed: the chance that a claim which fails in one case passes is at
//                       most 2.5 %.
//                       refuted: one case lies below it, of n cases with the interval at 1 − 5 %/n (Bonferroni), so
//                       that a claim that holds is refuted in at most 2.5 %, however many cases it has.
//   in geometric mean   the mean of the cases' log ratios; its variance is the sum of theirs over n², its degrees of
//                       freedom are Welch's and Satterthwaite's (Satterthwaite 1946). One interval, 95 %.
//   unclear             neither.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stats/paired.hpp"

namespace syslab::verdict {

enum class Quantifier {
  every_case,      // in each case of the sweep
  geometric_mean,  // of all cases together
};

enum class SpeedVerdict { confirmed, refuted, unclear };
std::string_view to_string(SpeedVerdict verdict);

// What is claimed, and from 0 to below 1 how much less than that still counts as it: 0.01.
struct SpeedBorder {
  double factor = 1;
  Quantifier quantifier = Quantifier::every_case;
  double tolerance = 0;

  double log() const;  // of factor × (1 − tolerance)
};

// Where an interval ends on the border to within this, it does not lie below it: times are sums of rounded numbers.
constexpr double kRoundingOfRatio = 1e-9;

// One case, as measured. `blocks` are of log(B / A) with A the slower side and B the faster one.
struct MeasuredSpeed {
  std::string title;
  std::vector<stats::PairedBlock> blocks;
  std::string failed;         // why there is no time; empty: there is
  bool faster_wrong = false;  // the faster side's results are wrong: it has no speed
};

// So many times as fast, with its 95 % interval.
struct Speed {
  double factor = 1, low = 1, high = 1;
  SpeedVerdict verdict = SpeedVerdict::unclear;
};

// What a verdict rests on.
enum class SpeedCause {
  nothing_measured,
  no_time,        // a case has none, or the faster side is wrong in it
  case_below,     // a case lies below the border
  cases_unclear,  // the intervals of some reach across it
  every_case,     // lies above it
  mean,           // of all cases
};
std::string_view to_string(SpeedCause cause);

struct SpeedFinding {
  SpeedVerdict verdict = SpeedVerdict::unclear;
  SpeedCause cause = SpeedCause::nothing_measured;
  std::size_t about = 0;                    // the case that the cause is about; the least, if it is about several
  std::size_t unclear = 0;                  // cases
  std::vector<std::optional<Speed>> cases;  // nothing: the case has no time
  std::optional<Speed> mean;                // geometric, of the cases, where all have a time
  // The largest factor that these measurements confirm, 0 where they confirm none.
  double confirmable = 0;
};

// Of the interval with which one of so many cases refutes (Bonferroni).
double confidence_of_one_in(std::size_t cases);

SpeedFinding judge(const SpeedBorder& border, std::span<const MeasuredSpeed> measured);

}  // namespace syslab::verdict
