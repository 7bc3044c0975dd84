// The tolerance for external implementations: that of the hand-out's tests where it is wider than the derived bound.
#pragma once

#include "contract/operation.hpp"
#include "ops/attention/oracle/oracle.hpp"

namespace syslab::attention {

// The same operation with tolerance 1e-2 + 1e-2·|expected| and without comparison with a naive kernel. Comparisons in
// GPU memory keep their derived bounds.
Operation at_handout_tolerance(Operation operation);

// What the oracle's bounds of such a problem allow for, in `check` as in `run`: who promises that tolerance has
// promised no arithmetic.
Part at_handout_tolerance(const Problem& problem);

}  // namespace syslab::attention
