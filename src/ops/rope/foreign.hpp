// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/foreign.hpp"
#include "ops/rope/rope.hpp"

namespace syslab::rope {

// "rope_forward" and "rope_backward": x, cos, sin; y. Flag: halves (the layout of 2026; else interleaved).
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::rope
