// Shared by both passes of the normalisation on a GPU: rows in the registers of a group of lanes.
//
// A *row group* of 32 to 512 lanes shares a row, as many as hold it in a few vectors of 16 bytes a lane. Vectors are
// a group's width apart, so that neighbouring lanes read neighbouring bytes.
#pragma once

#include <bit>

#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/rms_norm/cuda_kernels.hpp"
#include "ops/vectors.cuh"

namespace syslab::rms_norm {

using ops::load_pack;
using ops::Pack;
using ops::store_pack;

template <typename T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;

  __device__ T* at(std::int64_t row) const { return data + row * stride; }
};

template <typename T, typename View>
Rows<T> rows_of(const View& view) {
  return {static_cast<T*>(view.data), view.data == nullptr ? 0 : view.stride(0)};
}

// Elements of a vector of the wider of two dtypes, which is always x's.
template <typename X>
inline constexpr int kWidest = ops::kVectorBytes / static_cast<int>(sizeof(X));

// Lanes of a row group: a power of two, with at most `most_vectors` each.
inline int lanes_of(std::int64_t dim, int width, int most_vectors) {
  const auto vectors = static_cast<std::uint64_t>(dim / width), most = static_cast<std::uint64_t>(most_vectors);
  const std::uint64_t lanes = std::bit_ceil((vectors + most - 1) / most);
  return static_cast<int>(lanes < 32 ? 32 : lanes);
}

// The dtypes that kernels are instantiated for: equal ones, and a residual stream in fp32 around products in half
// precision.
template <typename Body>
void with_dtypes(const Problem& p, const Body& body) {
  const bool equal = p.x_dtype == p.y_dtype;
  if (p.x_dtype == DType::bf16 && equal) return body.template operator()<__nv_bfloat16, __nv_bfloat16>();
  if (p.x_dtype == DType::f16 && equal) return body.template operator()<__half, __half>();
  if (p.x_dtype != DType::f32) throw Error(ErrorKind::internal, "no kernel was made for rms_norm " + to_string(p));
  if (p.y_dtype == DType::bf16) return body.template operator()<float, __nv_bfloat16>();
  if (p.y_dtype == DType::f16) return body.template operator()<float, __half>();
  body.template operator()<float, float>();
}

}  // namespace syslab::rms_norm
