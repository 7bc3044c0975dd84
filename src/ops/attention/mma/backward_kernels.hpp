// The interface between the host code of flash_mma's backward passes and its kernels, compiled by nvcc
// (mma/backward_*.cu).
#pragma once

#include <array>
#include <cstdint>

#include "core/dtype.hpp"
#include "device/device.hpp"
#include "ops/attention/mma/backward_plan.hpp"

namespace syslab::attention::flash {

// A tensor (batch, head, row, unit stride) of 16-bit elements; strides in elements. `Pointer` is void* or const void*.
template <typename Pointer>
struct BasicOperand {
  Pointer data = nullptr;
  std::int64_t batch = 0, head = 0;
  int row = 0;
};
using Operand = BasicOperand<const void*>;
using Result = BasicOperand<void*>;

// fp32 parts to be summed in order, multiplied by `scale` and rounded once.
struct Sum {
  enum class Cut { one, keys, queries };  // how many parts: one each, or as many as a tile's steps give
  const float* parts = nullptr;
  Result to;
  Cut cut = Cut::one;
  int heads = 1, rows = 1, padded_rows = 1;
  int tile = 1;                  // rows with the same number of parts
  int other_tile = 1;            // rows of one step
  std::int64_t part_stride = 0;  // floats
  int blocks = 0;
  float scale = 1.0F;
};

struct BackwardParams {
  Operand q, k, v, out, dout;
  Result dq, dk, dv;
  const float* lse = nullptr;
  std::int64_t lse_batch = 0, lse_head = 0, lse_row = 0;

  Seen seen;
  int batch = 1, heads_q = 1, heads_kv = 1, head_dim = 1;
  float scale = 1.0F, scale_log2 = 1.0F;  // scale_log2 = scale·log₂e

  // Workspace. Rows are padded to kBackwardRowPad; parts are tiles of fragments (mma/backward.cuh).
  int rows_q = 0, rows_k = 0;
  float* statistics = nullptr;            // (batch·heads_q, rows_q, 2)
  float* dq_parts = nullptr;              // (parts, batch·heads_q, rows_q, padded head_dim)
  float* dk_parts = nullptr;              // (parts, batch·heads_kv, rows_k, padded head_dim)
  float* dv_parts = nullptr;              // the same
  int keys_steps = 0, queries_steps = 0;  // steps per part; 0: a block takes all steps of its tile

  std::array<Sum, 3> sums;
};

// In launch order.
enum class BackwardKernel {
  statistics,  // δ of all rows; zeroes dq_parts
  fused,       // dK, dV, and dQ by atomic additions to dq_parts
  queries,     // δ and dQ
  keys,        // dK and dV
  sum,         // sums parts into gradients
};

struct BackwardGrid {
  std::int64_t blocks = 1;
  int parts = 1;
};

// `tiles` is an index in kBackwardTiles. Error(internal) if the file has no such tiles.
using BackwardLauncher = void (*)(BackwardKernel kernel, int tiles, DType dtype, const BackwardParams& params,
                                  BackwardGrid grid, device::Stream stream);
void launch_backward_32(BackwardKernel, int tiles, DType, const BackwardParams&, BackwardGrid, device::Stream);
void launch_backward_64(BackwardKernel, int tiles, DType, const BackwardParams&, BackwardGrid, device::Stream);
void launch_backward_128(BackwardKernel, int tiles, DType, const BackwardParams&, BackwardGrid, device::Stream);
void launch_backward_256(BackwardKernel, int tiles, DType, const BackwardParams&, BackwardGrid, device::Stream);

// Rows per block of the statistics kernel, and threads per block of the sum kernel, each of which sums 8 columns.
inline constexpr int kStatisticsRows = 64;
inline constexpr int kSumThreads = 256;

}  // namespace syslab::attention::flash
