// The check of a case whose answer is arithmetic: the same number found in another way.
#pragma once

#include <string>

#include "worker/case_context.hpp"

namespace syslab::worker {

// Emits a check that passes where `found` is within `tolerance` of `expected` (NaN is within nothing), and throws
// CheckFailed where it does not. `how` says what was counted and how, for whoever reads the record.
void check_number(CaseContext& context, std::string name, double found, double expected, double tolerance,
                  const std::string& how);

}  // namespace syslab::worker
