// Launches any kernel of flash_mma's backward passes with any of the tiles that a file instantiates.
#pragma once

#include <type_traits>

#include "core/error.hpp"
#include "ops/attention/mma/backward_keys.cuh"
#include "ops/attention/mma/backward_queries.cuh"
#include "ops/attention/mma/backward_rows.cuh"

namespace syslab::attention::flash {

template <int kIndex>
struct BackwardTilesOf {
  static constexpr BackwardTiles kTiles = kBackwardTiles[kIndex];
  static constexpr int kHeadDim = kTiles.head_dim;
  static constexpr KeysTile kFused = kTiles.fused, kKeys = kTiles.keys;
  static constexpr QueriesTile kQueries = kTiles.queries;
};

template <typename T, typename Tiles>
void launch_backward(BackwardKernel kernel, const BackwardParams& params, BackwardGrid grid, device::Stream stream) {
  constexpr int kD = Tiles::kHeadDim;
  static_assert(kD == Tiles::kFused.head_dim && kD == Tiles::kKeys.head_dim && kD == Tiles::kQueries.head_dim);
  // The keys kernel reads no statistics that the queries kernel has not made.
  static_assert(Tiles::kQueries.queries % Tiles::kKeys.queries == 0);
  static_assert(KeysShared<Tiles, true>::kBytes <= Tiles::kTiles.shared_bytes);
  static_assert(KeysShared<Tiles, false>::kBytes <= Tiles::kTiles.shared_bytes);
  static_assert(QueriesShared<Tiles>::kBytes <= Tiles::kTiles.shared_bytes);
  switch (kernel) {
    case BackwardKernel::statistics: {
      static PreparedBackward statistics(statistics_kernel<T, kD>, 0, "flash_mma backward, statistics");
      return launch_backward_kernel(statistics, kStatisticsThreads, params, grid, stream);
    }
    case BackwardKernel::fused:
      return launch_keys<T, Tiles, true>(params, grid, stream);
    case BackwardKernel::queries:
      return launch_queries<T, Tiles>(params, grid, stream);
    case BackwardKernel::keys:
      return launch_keys<T, Tiles, false>(params, grid, stream);
    case BackwardKernel::sum: {
      static PreparedBackward sum(sum_kernel<T, kD>, 0, "flash_mma backward, sum");
      return launch_backward_kernel(sum, kSumThreads, params, grid, stream);
    }
  }
}

// With the tiles of this index, which must be one of those named.
template <int... kIndices>
void launch_backward_of(BackwardKernel kernel, int tiles, DType dtype, const BackwardParams& params, BackwardGrid grid,
                        device::Stream stream) {
  const auto try_one = [&]<int kIndex>(std::integral_constant<int, kIndex>) {
    if (tiles != kIndex) return false;
    if (dtype == DType::bf16) {
      launch_backward<__nv_bfloat16, BackwardTilesOf<kIndex>>(kernel, params, grid, stream);
    } else {
      launch_backward<__half, BackwardTilesOf<kIndex>>(kernel, params, grid, stream);
    }
    return true;
  };
  if (!(try_one(std::integral_constant<int, kIndices>{}) || ...)) {
    throw Error(ErrorKind::internal, "flash_mma: backward tiles of another head_dim");
  }
}

}  // namespace syslab::attention::flash
