// GPU rungs in builds with and without CUDA. Without it, a rung is only data in its ladder: `unavailable` is set and
// entry points are empty. Names in a discarded `if constexpr` need no definition, so no stubs are linked.
//
//   Rung rung = …;                       // name, teaches, dtypes, supports
//   if constexpr (!ops::kBuiltWithCuda) return ops::without_cuda(rung);
//   else rung.forward = cuda_forward; …
#pragma once

#include "ops/built_with_cuda.hpp"  // made by Meson: src/ops/meson.build
#include "ops/rung.hpp"

namespace syslab::ops {

inline constexpr bool kBuiltWithCuda = SYSLAB_CUDA != 0;
// The build has kernels for compute capability 9.0 only: gpu_archs has 90a.
inline constexpr bool kBuiltForHopper = SYSLAB_HOPPER != 0;

template <typename Rung>
Rung without_cuda(Rung rung) {
  rung.unavailable = "needs CUDA, which this build has not";
  return rung;
}

}  // namespace syslab::ops
