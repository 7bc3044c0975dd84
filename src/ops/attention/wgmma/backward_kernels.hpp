// Between the host code of flash_wgmma's backward pass and its kernels, which nvcc compiles for sm_90a alone: one
// head_dim a file.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "device/cuda/tensor_map.hpp"
#include "device/device.hpp"

namespace syslab::attention::wgmma {

// A tensor (batch, head, row, unit stride) of 16-bit elements; strides in elements. `Pointer` is void* or const void*.
template <typename Pointer>
struct BasicRows {
  Pointer data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;
};
using ConstRows = BasicRows<const void*>;
using Rows = BasicRows<void*>;

struct BackwardParams {
  device::TensorMap q, dout;      // boxes of 64 rows
  device::TensorMap k, v;         // boxes of the keys of a block
  device::TensorMap dk, dv;       // boxes of 64 rows
  ConstRows out_rows, dout_rows;  // for the kernels around
  Rows dq_rows;
  const float* lse = nullptr;
  std::int64_t lse_batch = 0, lse_head = 0, lse_row = 0;  // strides

  // Workspace, a tile of 64 queries after another and head after head (wgmma/backward_rows.cuh).
  float* dq_sums = nullptr;      // 64 × padded head_dim a tile
  float* negated_lse = nullptr;  // −log₂e·L, 64 a tile; −∞ for a row that sees no key or lies beyond the last
  float* negated_delta = nullptr;  // −Σ dO·O, 64 a tile; 0 for such a row
  unsigned* turns = nullptr;       // for each tile, blocks that have added to its dQ; after all tiles, a counter of
                                   // blocks that have begun; null: blocks add in no order

  int seq_q = 0, seq_k = 0;
  int batch = 1, heads_q = 1, heads_kv = 1;
  int heads_of_kv = 1;  // query heads that share a key/value head
  int head_dim = 1;
  int shift = 0;                    // row r sees keys j ≤ r + shift; seq_k if nothing is masked
  int query_tiles = 1;              // of a head
  int key_tiles = 1;                // of a head: what a block owns
  int section_heads = 1;            // key/value heads; their blocks begin in turn
  float scale = 1, scale_log2 = 1;  // scale_log2 = scale·log₂e
};

// In the order in which a pass launches them.
enum class BackwardKernel {
  statistics,  // L and δ in the form that the next kernel reads, zeros in dq_sums and turns; a block a tile of queries
  products,    // dK, dV and dq_sums; a block a tile of keys
  gradient,    // dQ from dq_sums; a block a tile of queries
};

// `tile` is an index in kBackwardTiles (wgmma/plan.hpp). Error(internal) if this file has no such tile.
using BackwardLauncher = void (*)(BackwardKernel kernel, int tile, DType dtype, const BackwardParams& params,
                                  device::Stream stream);
void launch_backward_64(BackwardKernel, int tile, DType, const BackwardParams&, device::Stream);
void launch_backward_128(BackwardKernel, int tile, DType, const BackwardParams&, device::Stream);
void launch_backward_192(BackwardKernel, int tile, DType, const BackwardParams&, device::Stream);
void launch_backward_256(BackwardKernel, int tile, DType, const BackwardParams&, device::Stream);

}  // namespace syslab::attention::wgmma
