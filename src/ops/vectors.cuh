// What the kernels over rows share: elements as CUDA knows them, vectors of them, sums over lanes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "core/tensor.hpp"

namespace syslab::ops {

inline constexpr int kVectorBytes = 16;

// What a tensor's elements are inside a kernel.
template <typename T>
struct ElementOf {
  using type = T;
};
template <>
struct ElementOf<f16> {
  using type = __half;
};
template <>
struct ElementOf<bf16> {
  using type = __nv_bfloat16;
};
template <typename T>
using Element = typename ElementOf<T>::type;

// `kWidth` adjacent elements, read and written by loads and stores of up to 16 bytes. Aligned to its size, or to 16
// bytes if it is larger.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < kVectorBytes ? sizeof(T) * kWidth : kVectorBytes) Pack {
  T at[kWidth];
};

template <int kWidth, typename T>
__device__ __forceinline__ Pack<T, kWidth> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}
template <typename T, int kWidth>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

// Makes the compiler convert these elements again from here on. Half-precision numbers that are used before and after a
// wait would otherwise be kept across it as floats, in twice the registers.
template <typename T, int kWidth>
__device__ __forceinline__ void forget_conversions(Pack<T, kWidth>& pack) {
  if constexpr (sizeof(T) == 2 && kWidth % 2 == 0) {
    auto* words = reinterpret_cast<std::uint32_t*>(pack.at);
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) asm volatile("" : "+r"(words[i]));
  }
}

// Whether rows of packs of `width` elements may be read from this matrix, by its base, row stride and columns.
template <typename View>
bool takes_packs(const View& tensor, std::int64_t width) {
  const std::uint64_t pack = static_cast<std::uint64_t>(width) * size_of(tensor.dtype);
  const std::uint64_t unit = pack < kVectorBytes ? pack : kVectorBytes;
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % unit != 0) return false;
  const int last = tensor.shape.rank() - 1;
  for (int dim = 0; dim < last; ++dim) {
    const bool steps = tensor.size(dim) > 1;
    if (steps && static_cast<std::uint64_t>(tensor.stride(dim)) * size_of(tensor.dtype) % unit != 0) return false;
  }
  return tensor.size(last) % width == 0;
}

// The sum over the 32 lanes of a warp, in a butterfly: all lanes get the same bits.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(~0U, value, apart);
  return value;
}

}  // namespace syslab::ops
