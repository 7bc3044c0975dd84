// The interface between flash_mma's host code and its kernels, compiled by nvcc (flash_mma_forward_*.cu): one head_dim
// per file.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "device/device.hpp"
#include "ops/attention/combine.hpp"

namespace syslab::attention::flash {

struct ForwardParams {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* out = nullptr;
  float* lse = nullptr;
  float *partial_out = nullptr, *partial_lse = nullptr;  // as CombineParams
  RowStrides q_stride, k_stride, v_stride, out_stride, lse_stride;
  int seq_q = 0, seq_k = 0, head_dim = 0;
  int heads = 0;           // batch·heads_q
  int heads_q = 1;         // of one batch
  int heads_of_kv = 1;     // query heads that share a key/value head
  int shift = 0;           // row r sees keys j ≤ r + shift; seq_k without a mask
  int row_blocks = 1;      // of a head
  int splits = 1;          // 1: out and lse are written directly
  int keys_of_split = 0;   // a multiple of the tile's keys
  float scale_log2 = 0;    // scale·log₂e
  float hidden_score = 0;  // score of a masked key: times scale_log2 it is −∞
};

// `tile` is an index in kForwardTiles (mma/plan.hpp). Error(internal) if this file has no such tile.
void launch_forward_32(int tile, DType dtype, const ForwardParams& params, device::Stream stream);
void launch_forward_64(int tile, DType dtype, const ForwardParams& params, device::Stream stream);
void launch_forward_128(int tile, DType dtype, const ForwardParams& params, device::Stream stream);
void launch_forward_256(int tile, DType dtype, const ForwardParams& params, device::Stream stream);

}  // namespace syslab::attention::flash
