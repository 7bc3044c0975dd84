// The rungs of the rotation; private to this folder.
#pragma once

#include <limits>

#include "ops/rope/rope.hpp"

namespace syslab::rope {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// For rungs that hold a whole head at a time.
inline constexpr std::int64_t kMostHeadDim = 1024;

// supports() of every rung here: the dtypes of x that it lists, heads up to a size, in both passes.
std::function<std::optional<std::string>(const Problem&, Pass)> supports_dtypes(
    const RungInfo& info, std::int64_t most_head_dim = std::numeric_limits<std::int64_t>::max());

// Location of pair k of a head in a layout: two elements, `apart` elements apart, beginning at `first`.
struct PairPlace {
  std::int64_t step, apart;
  std::int64_t first(std::int64_t k) const { return k * step; }
};
constexpr PairPlace place_of(Layout layout, std::int64_t head_dim) {
  return layout == Layout::interleaved ? PairPlace{2, 1} : PairPlace{1, head_dim / 2};
}

}  // namespace syslab::rope
