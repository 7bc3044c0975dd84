// Converts one head of a tensor to contiguous floats and back, for kernels made of BLAS calls.
#pragma once

#include <algorithm>
#include <type_traits>

#include "ops/attention/rows.hpp"

namespace syslab::attention {

// One (batch, head) of a tensor as contiguous floats. Not for fp64 tensors.
inline void load_floats(const ConstTensorView& view, std::int64_t batch, std::int64_t head, float* to) {
  with_storage(view.dtype, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, double>) {
      for (std::int64_t i = 0; i < view.size(2); ++i) {
        const T* row = row_of<T>(view, batch, head, i);
        to = std::transform(row, row + view.size(3), to, [](T x) { return to_float(x); });
      }
    }
  });
}

inline void store_floats(const float* from, const TensorView& view, std::int64_t batch, std::int64_t head) {
  with_storage(view.dtype, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, double>) {
      for (std::int64_t i = 0; i < view.size(2); ++i, from += view.size(3)) {
        std::transform(from, from + view.size(3), row_of<T>(view, batch, head, i), from_float<T>);
      }
    }
  });
}

}  // namespace syslab::attention
