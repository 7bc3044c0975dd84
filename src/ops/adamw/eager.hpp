// AdamW as the hand-out's optimizer runs in a framework, an operation a kernel; `eager_cuda` is this on a GPU, and on
// the CPU it is proved. A framework goes parameter by parameter; this goes through the arena in pieces of kEagerPiece
// elements, each with these kernels:
//
//   m    β₁ ·, (1 − β₁) ·, +                                                 3
//   v    β₂ ·, g², (1 − β₂) ·, +                                             4
//   p    step ·, √v, + eps, /, −                                             5
//        lr·wd ·, −          after the update or before it                   2
//
// Extra: g · grad_scale (· clip), which frameworks do elsewhere; the other place of the decay, and the correction of
// √v, which read nothing where they change nothing; the copy in half precision.
//
// The interface lends no memory, so three pieces of temporaries are taken from the device's allocator for each call.
#pragma once

#include "ops/adamw/adamw.hpp"
#include "ops/framework/framework.hpp"

namespace syslab::adamw {

inline constexpr std::int64_t kEagerPiece = std::int64_t{1} << 22;

void eager_step(const Problem& problem, const Args& args, device::Stream stream);

// What is launched for a framework, without what is extra.
std::int64_t eager_kernels(const Problem& problem);

}  // namespace syslab::adamw
