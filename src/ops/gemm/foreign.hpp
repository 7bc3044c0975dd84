// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/foreign.hpp"
#include "ops/gemm/gemm.hpp"

namespace syslab::gemm {

// "gemm": a, b; c.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::gemm
