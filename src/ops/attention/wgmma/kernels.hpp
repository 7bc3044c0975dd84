// Between flash_wgmma's host code and its kernels, which nvcc compiles for sm_90a alone: one head_dim a file.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "device/cuda/tensor_map.hpp"
#include "device/device.hpp"

namespace syslab::attention::wgmma {

struct ForwardParams {
  device::TensorMap q, k, v, out;  // (batch, head, position, column)
  float* lse = nullptr;
  unsigned* counter = nullptr;  // 0 at the start: items are drawn from it; null: they are dealt out
  std::int64_t lse_batch = 0, lse_head = 0, lse_row = 0;  // strides
  int seq_q = 0, seq_k = 0;
  int heads_q = 1;      // of one batch
  int heads_of_kv = 1;  // query heads that share a key/value head
  int shift = 0;        // row r sees keys j ≤ r + shift; seq_k where nothing is masked
  int heads = 1;        // heads_q · batches
  int head_dim = 0;
  int row_blocks = 1;                                    // of a head
  int items_of_head = 1;                                 // row_blocks, and more where keys are split
  int items = 1;                                         // of all heads
  int section_heads = 0;                                 // as ForwardPlan
  int blocks_of_split = 0;                               // of keys; as ForwardPlan
  float *partial_out = nullptr, *partial_lse = nullptr;  // as flash::CombineParams
  int negative = 0;      // the scale is: scores change their sign, and scale_log2 is its amount
  float scale_log2 = 0;  // |scale|·log₂e
};

// `tile` is an index in kForwardTiles (wgmma/plan.hpp). Error(internal) if this file has no such tile.
void launch_forward_64(int tile, DType dtype, const ForwardParams& params, int grid, device::Stream stream);
void launch_forward_96(int tile, DType dtype, const ForwardParams& params, int grid, device::Stream stream);
void launch_forward_128(int tile, DType dtype, const ForwardParams& params, int grid, device::Stream stream);
void launch_forward_192(int tile, DType dtype, const ForwardParams& params, int grid, device::Stream stream);
void launch_forward_256(int tile, DType dtype, const ForwardParams& params, int grid, device::Stream stream);

}  // namespace syslab::attention::wgmma
