// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/foreign.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

// "weighted_sum_forward": x, w; y. "weighted_sum_backward": x, w, dy; dx, dw.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::weighted_sum
