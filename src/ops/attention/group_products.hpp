// The products of attention on a GPU, one key/value head with all query heads that read it at a time: these heads are
// adjacent in memory, so grouped queries form one matrix of (heads_q / heads_kv) · seq_q rows and need no loop. Tensors
// and matrices of scores are contiguous.
#pragma once

#include "device/cuda/cublas.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Groups and rows of a part of the problem; `all` is the whole.
struct GroupBlock {
  std::int64_t groups = 1, rows = 1;  // rows of one group
  std::int64_t seq_k = 1, head_dim = 1;

  static std::int64_t rows_of(const Problem& p) { return p.heads_q / p.heads_kv * p.seq_q; }
  static GroupBlock all(const Problem& p) { return {p.batch * p.heads_kv, rows_of(p), p.seq_k, p.head_dim}; }
};

struct Matrix {
  void* data = nullptr;
  DType dtype = DType::f32;
};
struct ConstMatrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  ConstMatrix(const void* data_, DType dtype_) : data(data_), dtype(dtype_) {}
  ConstMatrix(const Matrix& matrix)
      : data(matrix.data), dtype(matrix.dtype) {}  // NOLINT: read-only use is always
                                                   // allowed
};

// scores = factor · queries · keysᵀ
inline void queries_times_keys(const GroupBlock& block, double factor, const ConstMatrix& queries,
                               const ConstMatrix& keys, const Matrix& scores, device::Stream stream) {
  device::gemm({.m = block.rows,
                .n = block.seq_k,
                .k = block.head_dim,
                .transpose_b = true,
                .alpha = factor,
                .a = {queries.data, queries.dtype, block.head_dim, block.rows * block.head_dim},
                .b = {keys.data, keys.dtype, block.head_dim, block.seq_k * block.head_dim},
                .c = {scores.data, scores.dtype, block.seq_k, block.rows * block.seq_k},
                .batch = block.groups},
               stream);
}

// to = factor · weights · keys: O = P·V, dQ = scale · dS·K
inline void weights_times_keys(const GroupBlock& block, double factor, const ConstMatrix& weights,
                               const ConstMatrix& keys, const Matrix& to, device::Stream stream) {
  device::gemm({.m = block.rows,
                .n = block.head_dim,
                .k = block.seq_k,
                .alpha = factor,
                .a = {weights.data, weights.dtype, block.seq_k, block.rows * block.seq_k},
                .b = {keys.data, keys.dtype, block.head_dim, block.seq_k * block.head_dim},
                .c = {to.data, to.dtype, block.head_dim, block.rows * block.head_dim},
                .batch = block.groups},
               stream);
}

// to = factor · weightsᵀ · queries + keep · to: dV = Pᵀ·dO, dK = scale · dSᵀ·Q, summed over the query heads of a group
inline void turned_times_queries(const GroupBlock& block, double factor, const ConstMatrix& weights,
                                 const ConstMatrix& queries, double keep, const Matrix& to, device::Stream stream) {
  device::gemm({.m = block.seq_k,
                .n = block.head_dim,
                .k = block.rows,
                .transpose_a = true,
                .alpha = factor,
                .beta = keep,
                .a = {weights.data, weights.dtype, block.seq_k, block.rows * block.seq_k},
                .b = {queries.data, queries.dtype, block.head_dim, block.rows * block.head_dim},
                .c = {to.data, to.dtype, block.head_dim, block.seq_k * block.head_dim},
                .batch = block.groups},
               stream);
}

}  // namespace syslab::attention
