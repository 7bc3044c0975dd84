// AdamW as the hand-out's optimizer runs in a framework, one kernel per operation; `eager_cuda` runs it on a GPU, and
// the same code is tested on the CPU. A framework works parameter by parameter; this works through the arena in pieces
// of kEagerPiece elements, each with these kernels:
//
//   m    β₁ ·, (1 − β₁) ·, +                                                 3
//   v    β₂ ·, g², (1 − β₂) ·, +                                             4
//   p    step ·, √v, + eps, /, −                                             5
//        lr·wd ·, −          after the update or before it                   2
//
// Extra: g · grad_scale (· clip), which frameworks do elsewhere; the decay at the other place and the correction of √v,
// which read nothing if they change nothing; the half-precision copy.
//
// The interface has no workspace, so each call takes three pieces of temporaries from the device's allocator.
#pragma once

#include "ops/adamw/adamw.hpp"
#include "ops/framework/framework.hpp"

namespace syslab::adamw {

inline constexpr std::int64_t kEagerPiece = std::int64_t{1} << 22;

void eager_step(const Problem& problem, const Args& args, device::Stream stream);

// Number of kernels that a framework launches, without the extra ones.
std::int64_t eager_kernels(const Problem& problem);

}  // namespace syslab::adamw
