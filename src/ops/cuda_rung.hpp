// Rungs on a GPU in builds with CUDA and without. Without, such a rung stands on its ladder as data only, `unavailable`
// filled and no entry points; names in a discarded `if constexpr` need no definition, so no stand-ins are linked.
//
//   Rung rung = …;                       // name, teaches, dtypes, supports
//   if constexpr (!ops::kBuiltWithCuda) return ops::without_cuda(rung);
//   else rung.forward = cuda_forward; …
#pragma once

#include "ops/built_with_cuda.hpp"  // made by Meson: src/ops/meson.build
#include "ops/rung.hpp"

namespace syslab::ops {

inline constexpr bool kBuiltWithCuda = SYSLAB_CUDA != 0;
// Kernels that only compute capability 9.0 runs are there: gpu_archs has 90a.
inline constexpr bool kBuiltForHopper = SYSLAB_HOPPER != 0;

template <typename Rung>
Rung without_cuda(Rung rung) {
  rung.unavailable = "needs CUDA, which this build has not";
  return rung;
}

}  // namespace syslab::ops
