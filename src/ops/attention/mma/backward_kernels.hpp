// Between the host code of flash_mma's backward passes and its kernels, which nvcc compiles (mma/backward_*.cu).
#pragma once

#include <array>
#include <cstdint>

#include "core/dtype.hpp"
#include "device/device.hpp"
#include "ops/attention/mma/backward_plan.hpp"

namespace syslab::attention::flash {

// A tensor (batch, head, row, unit stride) of 16-bit elements; strides in elements.
struct Operand {
  void* data = nullptr;
  std::int64_t batch = 0, head = 0;
  int row = 0;
};

// Several fp32 results to be added up, in order, times `scale`, and rounded once.
struct Sum {
  enum class Cut { one, keys, queries };  // whose parts they are: one each, or as many as a tile's steps make
  const float* parts = nullptr;
  Operand to;
  Cut cut = Cut::one;
  int heads = 1, rows = 1, padded_rows = 1;
  int tile = 1;                  // rows that have the same number of parts
  int other_tile = 1;            // rows of one step
  std::int64_t part_stride = 0;  // floats
  int blocks = 0;
  float scale = 1.0F;
};

struct BackwardParams {
  Operand q, k, v, out, dout, dq, dk, dv;
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
  int keys_steps = 0, queries_steps = 0;  // of a part; 0: a block takes all steps of its tile

  std::array<Sum, 3> sums;
};

// In the order in which a pass launches them.
enum class BackwardKernel {
  statistics,  // δ of all rows, and zeros in dq_parts
  fused,       // dK, dV, and dQ by atomic additions to dq_parts
  queries,     // δ and dQ
  keys,        // dK and dV
  sum,         // parts to gradients
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

// Rows of a block of the statistics kernel, and threads of one of the sum kernel, each of which makes 8 columns.
inline constexpr int kStatisticsRows = 64;
inline constexpr int kSumThreads = 256;

}  // namespace syslab::attention::flash
