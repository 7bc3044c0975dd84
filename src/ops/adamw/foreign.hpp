// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/adamw/adamw.hpp"
#include "ops/foreign.hpp"

namespace syslab::adamw {

// "adamw_step": p, m, v, g; new_p, new_m, new_v. Numbers: those of StepNumbers, and clip. A step that is skipped is not
// asked for.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::adamw
