// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/foreign.hpp"
#include "ops/global_norm/global_norm.hpp"

namespace syslab::global_norm {

// "global_norm": g; norm, factor. Numbers: max_norm (left out where nothing is clipped) and grad_scale.
// "global_norm_scale": g, factor; scaled_g. Elements that are not finite are counted here, for whoever asks.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::global_norm
