// Tiles of the oracle on a GPU: operands of any dtype as doubles in shared memory, and their products.
//
// What waits for what (landed, left: device/cuda/ptx.cuh). All threads of the block store in load(), and accumulate()
// reads what others have stored. Landed: a barrier of the block between the two. Left: another one before the tile is
// loaded again. Both are in the callers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/tensor.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention::oracle {

constexpr int kOwned = 32;  // rows of the result that a block makes
constexpr int kSteps = 32;  // positions of the reduction a step
constexpr int kDepth = 64;  // columns of an operand at a time
constexpr int kThreads = 256;
constexpr int kSide = 16;  // threads are a square of this side
constexpr int kRows = kOwned / kSide, kPairs = kSteps / kSide, kColumns = kDepth / kSide;  // of one thread
constexpr int kMaxDim = 256;

__device__ inline double as_double(double value) { return value; }
__device__ inline double as_double(float value) { return value; }
__device__ inline double as_double(__half value) { return __half2float(value); }
__device__ inline double as_double(__nv_bfloat16 value) { return __bfloat162float(value); }

// A four-dimensional view, as a kernel parameter.
struct Operand {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0, rows = 0;
  int columns = 0;

  Operand() = default;
  explicit Operand(const ConstTensorView& view)
      : data(view.data),
        dtype(view.dtype),
        batch_stride(view.stride(0)),
        head_stride(view.stride(1)),
        row_stride(view.stride(2)),
        rows(view.size(2)),
        columns(static_cast<int>(view.size(3))) {}

  __device__ double at(std::int64_t batch, std::int64_t head, std::int64_t row, int column) const {
    const std::int64_t offset = batch * batch_stride + head * head_stride + row * row_stride + column;
    switch (dtype) {
      case DType::f64:
        return static_cast<const double*>(data)[offset];
      case DType::f32:
        return static_cast<const float*>(data)[offset];
      case DType::f16:
        return as_double(static_cast<const __half*>(data)[offset]);
      case DType::bf16:
        return as_double(static_cast<const __nv_bfloat16*>(data)[offset]);
    }
    return 0;
  }
};

// The problem, as a kernel parameter.
struct Sizes {
  std::int64_t heads_q = 1, heads_kv = 1, seq_q = 1, seq_k = 1;
  int head_dim = 1;
  Mask mask = Mask::none;
  double scale = 1;

  explicit Sizes(const Problem& p)
      : heads_q(p.heads_q),
        heads_kv(p.heads_kv),
        seq_q(p.seq_q),
        seq_k(p.seq_k),
        head_dim(static_cast<int>(p.head_dim)),
        mask(p.mask),
        scale(p.effective_scale()) {}

  __device__ std::int64_t shift() const { return mask == Mask::bottom_right ? seq_k - seq_q : 0; }
  __device__ std::int64_t visible_keys(std::int64_t row) const {  // as Problem's
    if (mask == Mask::none) return seq_k;
    return max(std::int64_t{0}, min(row + 1 + shift(), seq_k));
  }
  // First query row that sees key `key`.
  __device__ std::int64_t first_query(std::int64_t key) const {
    return mask == Mask::none ? 0 : max(std::int64_t{0}, key - shift());
  }
};

// Rows of doubles with two columns of padding: when eight threads read two neighbours each, of eight rows, they use all
// banks once, and each reads its two by one aligned load.
template <int Rows, int Columns>
struct Tile {
  alignas(16) double cell[Rows][Columns + 2];
};

template <typename T, int Rows>
__device__ void load_as(const Operand& from, std::int64_t offset, std::int64_t first_row, int first_column,
                        std::int64_t least_row, Tile<Rows, kDepth>& to) {
  constexpr int kAcross = kThreads / kDepth, kInFlight = 4;
  static_assert(Rows % (kAcross * kInFlight) == 0);
  const int row = static_cast<int>(threadIdx.x) / kDepth, column = static_cast<int>(threadIdx.x) % kDepth;
  const T* data =
      static_cast<const T*>(from.data) + offset + (first_row + row) * from.row_stride + first_column + column;
  const bool in_columns = first_column + column < from.columns;
#pragma unroll 1
  for (int begin = 0; begin < Rows; begin += kAcross * kInFlight) {
    T values[kInFlight];  // all under way before the first is waited for
#pragma unroll
    for (int n = 0; n < kInFlight; ++n) {
      const int at = begin + kAcross * n;
      const bool inside = in_columns && first_row + row + at >= least_row && first_row + row + at < from.rows;
      values[n] = inside ? data[at * from.row_stride] : T(0.0F);
    }
#pragma unroll
    for (int n = 0; n < kInFlight; ++n) to.cell[row + begin + kAcross * n][column] = as_double(values[n]);
  }
}

// Rows below `least_row`, and everything beyond the tensor, become zeros.
template <int Rows>
__device__ void load(const Operand& from, std::int64_t batch, std::int64_t head, std::int64_t first_row,
                     int first_column, Tile<Rows, kDepth>& to, std::int64_t least_row = 0) {
  const std::int64_t offset = batch * from.batch_stride + head * from.head_stride;
  switch (from.dtype) {
    case DType::f64:
      return load_as<double>(from, offset, first_row, first_column, least_row, to);
    case DType::f32:
      return load_as<float>(from, offset, first_row, first_column, least_row, to);
    case DType::f16:
      return load_as<__half>(from, offset, first_row, first_column, least_row, to);
    case DType::bf16:
      return load_as<__nv_bfloat16>(from, offset, first_row, first_column, least_row, to);
  }
}

__device__ inline double2 pair_at(const double* cell) { return *reinterpret_cast<const double2*>(cell); }

// Where in a tensor a tile stands.
struct Place {
  std::int64_t batch, head, row;
};

// products[r][s] += A[2y + r] · B[x + 16s] over the first `depth` columns; those beyond an operand's end are zero.
__device__ inline void accumulate(const Tile<kOwned, kDepth>& a, const Tile<kSteps, kDepth>& b, int depth, int x, int y,
                                  double (&products)[kRows][kPairs]) {
#pragma unroll 2
  for (int d = 0; d < depth; d += 2) {
    double2 left[kRows], right[kPairs];
#pragma unroll
    for (int r = 0; r < kRows; ++r) left[r] = pair_at(&a.cell[kRows * y + r][d]);
#pragma unroll
    for (int s = 0; s < kPairs; ++s) right[s] = pair_at(&b.cell[x + kSide * s][d]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int s = 0; s < kPairs; ++s) {
        products[r][s] += left[r].x * right[s].x;
        products[r][s] += left[r].y * right[s].y;
      }
    }
  }
}

}  // namespace syslab::attention::oracle
