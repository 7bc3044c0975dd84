// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/cross_entropy/cross_entropy.hpp"
#include "ops/foreign.hpp"

namespace syslab::cross_entropy {

// "cross_entropy_forward": logits, targets; row_loss, lse, loss. "cross_entropy_backward": logits, targets, lse;
// dlogits; number: scale. Both at once are one call after the other. Targets are whole numbers.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::cross_entropy
