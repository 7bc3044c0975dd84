// What each law of a plan may take of the time that all have together: its share of what the others left.
#pragma once

#include "plan/plan.hpp"
#include "runner/runner.hpp"

namespace syslab::runner {

// What the next of `laws_left` laws may take of the time until `end`.
Nanoseconds law_time_of(std::chrono::steady_clock::time_point end, std::chrono::steady_clock::time_point now,
                        std::int64_t laws_left);

class LawShares {
 public:
  // Begins now.
  LawShares(const plan::Plan& plan, const RunSpec& spec);

  // Sets what the next law may take, if the case is one.
  void give(const plan::PlannedCase& next, MeasureSpec& spec);
  void took(const AttemptResult& result);  // of a case that was given its share

 private:
  Nanoseconds limit() const;

  RunSpec spec_;
  std::chrono::steady_clock::time_point end_;
  std::int64_t laws_, left_;
  int side_by_side_;
  Nanoseconds not_spent_{};  // of `within`, of all processors that are used
};

}  // namespace syslab::runner
