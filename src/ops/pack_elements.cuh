// Elements of packs as floats, and floats as elements. Through whole registers: a half-precision element taken out of a
// pack by itself would occupy a register of its own, and kernels that hold long rows in registers have none to spare.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/cuda/ptx.cuh"
#include "ops/vectors.cuh"

namespace syslab::ops {

template <typename T, int kWidth>
inline constexpr bool kInWords = sizeof(T) == 2 && kWidth % 2 == 0;

// `i` is known when compiling, as in an unrolled loop.
template <typename T, int kWidth>
__device__ __forceinline__ float element(const Pack<T, kWidth>& pack, int i) {
  if constexpr (kInWords<T, kWidth> && std::is_same_v<T, __nv_bfloat16>) {
    const std::uint32_t word = reinterpret_cast<const std::uint32_t*>(&pack)[i / 2];
    return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000U);
  } else {
    return static_cast<float>(pack.at[i]);
  }
}

// Rounded to nearest even.
template <typename T, int kWidth>
__device__ __forceinline__ Pack<T, kWidth> to_pack(const float (&values)[kWidth]) {
  Pack<T, kWidth> pack;
  if constexpr (kInWords<T, kWidth>) {
    auto* words = reinterpret_cast<std::uint32_t*>(&pack);
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) words[i / 2] = ptx::pack<T>(values[i], values[i + 1]);
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) pack.at[i] = static_cast<T>(values[i]);
  }
  return pack;
}

// All rows of a matrix begin at 16 bytes: whole packs may be taken of each, and what is left behind them singly.
template <typename View>
bool rows_are_aligned(const View& tensor) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % kVectorBytes != 0) return false;
  if (tensor.shape.rank() < 2 || tensor.size(0) == 1) return true;
  return static_cast<std::uint64_t>(tensor.stride(0)) * size_of(tensor.dtype) % kVectorBytes == 0;
}

}  // namespace syslab::ops
