// Rows whose keys are split among several blocks of a forward kernel: what the blocks leave behind, and the kernel that
// puts it together. flash_mma and flash_wgmma share it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"
#include "device/device.hpp"

namespace syslab::attention::flash {

// Distances in elements between batches, heads and rows.
struct RowStrides {
  std::int64_t batch = 0, head = 0, row = 0;
};

// Split s of a row has its keys s·keys_of_split … (s+1)·keys_of_split − 1. A block of rows has as many splits as its
// last row sees keys of; with one, the forward kernel wrote `out` and `lse` itself, and they are left alone.
struct CombineParams {
  void* out = nullptr;
  float* lse = nullptr;
  const float* partial_out = nullptr;  // (split, batch·heads_q, seq_q, head_dim), each normalised by its own sum
  const float* partial_lse = nullptr;  // (split, batch·heads_q, seq_q); −∞ where the row sees no key of the split
  RowStrides out_stride, lse_stride;
  int seq_q = 0, seq_k = 0, head_dim = 0;  // head_dim: a multiple of 8
  int heads = 0;                           // batch·heads_q
  int heads_q = 1;                         // of one batch
  int shift = 0;                           // row r sees keys j ≤ r + shift; seq_k without a mask
  int rows_of_block = 64;
  int keys_of_split = 0;
};

// Floats of both partial tensors, partial_out first.
constexpr std::int64_t partial_floats(std::int64_t splits, std::int64_t rows_of_all_heads, std::int64_t head_dim) {
  return splits * rows_of_all_heads * (head_dim + 1);
}

// Bytes of them; none where there is one split.
constexpr std::size_t partial_bytes(std::int64_t splits, std::int64_t rows_of_all_heads, std::int64_t head_dim) {
  return splits <= 1 ? 0
                     : static_cast<std::size_t>(partial_floats(splits, rows_of_all_heads, head_dim)) * sizeof(float);
}

// Queues the kernel. partial_out, out and their rows are aligned to 16 and 8 bytes.
void launch_combine(DType dtype, const CombineParams& params, device::Stream stream);

}  // namespace syslab::attention::flash
