// The two lines that `check --mine` ends with: the hand-out's verdict, and what was found beyond it.
#pragma once

#include <string>

#include "plan/plan.hpp"
#include "session/context.hpp"
#include "store/store.hpp"

namespace syslab::cli {

struct CheckVerdict {
  std::string year;             // of the hand-out
  bool beyond_decides = false;  // --contract full
};

// Reads what the run stored of each case of `plan`. `ended`: what the run as a whole came to.
Exit print_verdict(const Context& context, const store::Store& store, store::RowId run, const plan::Plan& plan,
                   const CheckVerdict& asked, Exit ended);

bool is_mine(const plan::Plan& plan, const plan::PlannedCase& planned);

}  // namespace syslab::cli
