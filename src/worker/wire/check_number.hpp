// The body of a purely arithmetic case: numbers, and the same numbers computed in another way.
#pragma once

#include <string>

#include "worker/cases/case_context.hpp"

namespace syslab::worker {

// Emits a check that passes where `found` is within `tolerance` of `expected` (NaN is within nothing), and throws
// CheckFailed where it does not. `how` says what was counted and how, for readers of the record.
void check_number(CaseContext& context, std::string name, double found, double expected, double tolerance,
                  const std::string& how);

// An answer that a calculator of another room gives: its `recounts` (name, found, expected, tolerance, how) are
// checked, then its `numbers` (name, unit, value) become metrics.
template <typename Answer>
void tell_answer(CaseContext& context, const Answer& answer) {
  for (const auto& one : answer.recounts) {
    check_number(context, one.name, one.found, one.expected, one.tolerance, one.how);
  }
  for (const auto& one : answer.numbers) context.metric(one.name, one.unit, one.value);
}

}  // namespace syslab::worker
