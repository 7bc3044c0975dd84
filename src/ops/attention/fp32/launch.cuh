// Starts one of the kernels of the fp32 rungs.
#pragma once

#include <type_traits>

#include "device/cuda/overlap.cuh"
#include "ops/attention/fp32/kernels.hpp"

namespace syslab::attention::fp32 {

// run(std::integral_constant<int, columns>{}): each kernel of a file is one of these.
template <typename Run>
void with_columns(int columns, const Run& run) {
  if (columns == 16) return run(std::integral_constant<int, 16>{});
  if (columns == 32) return run(std::integral_constant<int, 32>{});
  if (columns == 64) return run(std::integral_constant<int, 64>{});
  run(std::integral_constant<int, 128>{});
}

}  // namespace syslab::attention::fp32
