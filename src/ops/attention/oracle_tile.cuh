// Tiles of the oracle on a GPU: operands of any dtype as doubles in shared memory, and their products.
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

// A four-dimensional view as kernels take it.
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
        return __half2float(static_cast<const __half*>(data)[offset]);
      case DType::bf16:
        return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[offset]);
    }
    return 0;
  }
};

// What every kernel knows of the problem.
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

// Rows of doubles, two columns more than asked for: 16 threads that read two neighbours of 16 rows meet all banks, and
// two neighbours are one aligned load.
template <int Rows, int Columns>
struct Tile {
  alignas(16) double cell[Rows][Columns + 2];
};

// Zeros for rows below `least_row` and what lies beyond the tensor.
template <int Rows>
__device__ void load(const Operand& from, std::int64_t batch, std::int64_t head, std::int64_t first_row,
                     int first_column, Tile<Rows, kDepth>& to, std::int64_t least_row = 0) {
  for (int index = static_cast<int>(threadIdx.x); index < Rows * kDepth; index += kThreads) {
    const int row = index / kDepth, column = index % kDepth;
    const bool inside =
        first_row + row >= least_row && first_row + row < from.rows && first_column + column < from.columns;
    to.cell[row][column] = inside ? from.at(batch, head, first_row + row, first_column + column) : 0.0;
  }
}

__device__ inline double2 pair_at(const double* cell) { return *reinterpret_cast<const double2*>(cell); }

// Where in a tensor a tile stands.
struct Place {
  std::int64_t batch, head, row;
};

// products[r][s] = A[y + 16r] · B[x + 16s] over the whole head_dim. A's tile is kept between steps where one holds all
// of head_dim; `fresh`: it is not loaded yet.
__device__ inline void multiply(const Operand& a, const Place& a_at, Tile<kOwned, kDepth>& a_tile, const Operand& b,
                                const Place& b_at, Tile<kSteps, kDepth>& b_tile, bool fresh,
                                double (&products)[kRows][kPairs]) {
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  for (auto& row : products) {
    for (double& product : row) product = 0;
  }
  for (int first = 0; first < a.columns; first += kDepth) {
    __syncthreads();
    if (fresh || a.columns > kDepth) load(a, a_at.batch, a_at.head, a_at.row, first, a_tile);
    load(b, b_at.batch, b_at.head, b_at.row, first, b_tile);
    __syncthreads();
    const int depth = min(kDepth, (a.columns - first + 3) / 4 * 4);  // what is beyond the end is zero
#pragma unroll 2
    for (int d = 0; d < depth; d += 2) {
      double2 left[kRows], right[kPairs];
#pragma unroll
      for (int r = 0; r < kRows; ++r) left[r] = pair_at(&a_tile.cell[y + kSide * r][d]);
#pragma unroll
      for (int s = 0; s < kPairs; ++s) right[s] = pair_at(&b_tile.cell[x + kSide * s][d]);
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
}

}  // namespace syslab::attention::oracle
