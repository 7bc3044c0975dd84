// What measurements make of a claim.
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

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "claim/statement.hpp"
#include "stats/paired.hpp"

namespace syslab::claim {

constexpr int kFewestLaunches = 3;  // of a case, for an interval

enum class Verdict { confirmed, refuted, unclear };
std::string_view to_string(Verdict verdict);

// One case, as measured. `blocks` are of log(B / A) with A the slower side and B the faster one.
struct Measured {
  std::string title;
  std::vector<stats::PairedBlock> blocks;
  std::string failed;         // why there is no time; empty: there is
  bool faster_wrong = false;  // the faster side's results are wrong: it has no speed
};

// So many times as fast, with its 95 % interval.
struct Speed {
  double factor = 1, low = 1, high = 1;
  Verdict verdict = Verdict::unclear;
};

// Four digits, rounded down: what "at least" may be said of.
std::string claimable_text(double factor);
// "1.190 … 1.210", with so many digits that both compare with the claim's border as printed.
std::string interval_text(const Speed& speed, double log_border);

struct Finding {
  Verdict verdict = Verdict::unclear;
  std::string reason;                       // one sentence
  std::vector<std::optional<Speed>> cases;  // nothing: the case has no time
  std::optional<Speed> mean;                // geometric, of the cases, where all have a time
  bool of_mean = false;                     // the verdict is the mean's
  // The largest factor that these measurements confirm, 0 where they confirm none.
  double confirmable = 0;
  std::optional<std::size_t> told_failure;  // the case whose failure `reason` quotes whole
};

// The claim's border, as a log ratio slower / faster. Where an interval ends on the border to within 10⁻⁹, it does not
// lie below it: times are sums of rounded numbers.
double log_border(const Statement& statement, double tolerance);

// "1.0395, 1 % less than claimed": all digits of the border.
std::string border_text(const Statement& statement, double tolerance);

// `tolerance`, from 0 to below 1: how much less than claimed still counts as what was claimed, as a part: 0.01.
Finding judge(const Statement& statement, std::span<const Measured> measured, double tolerance);

}  // namespace syslab::claim
