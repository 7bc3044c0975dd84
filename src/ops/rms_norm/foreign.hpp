// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/foreign.hpp"
#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

// "rms_norm_forward": x, delta (where it adds), w; h (where it adds), y, rstd. "rms_norm_backward": dy, h, w, rstd, dh
// (where there is one); dx, dw. Number: eps.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::rms_norm
