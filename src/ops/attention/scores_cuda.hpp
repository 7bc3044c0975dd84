// Kernels on score matrices between two products, one operation each, for the rungs that hold such matrices on a GPU.
// All matrices are contiguous in device memory, with one row of seq_k elements per query.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "device/device.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention::scores {

// Rows first … first + rows of all query rows, counted through batches, heads and positions.
struct Rows {
  std::int64_t first = 0, rows = 0;
  std::int64_t heads_q = 1, seq_q = 1, seq_k = 1;
  Mask mask = Mask::none;

  static Rows all(const Problem& p) { return {0, p.batch * p.heads_q * p.seq_q, p.heads_q, p.seq_q, p.seq_k, p.mask}; }
};

// Location of a row's L: fp32 with float scores, fp64 with double ones. `Pointer` is void* or const void*.
template <typename Pointer>
struct BasicLse {
  Pointer data = nullptr;
  std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  explicit BasicLse(const BasicTensorView<Pointer>& view)
      : data(view.data), batch_stride(view.stride(0)), head_stride(view.stride(1)), row_stride(view.stride(2)) {}
};
using Lse = BasicLse<void*>;
using ConstLse = BasicLse<const void*>;

// --- fused ----------------------------------------------------------------------------------------------------------

// Softmax over the keys that each row sees, zeros elsewhere, and L. `weights` may be `scores` if the types are the
// same. Scores are float, or double with double weights.
void softmax(const Rows& rows, DType scores_dtype, const void* scores, DType weights_dtype, void* weights,
             const Lse& lse, device::Stream stream);
// ds = P ∘ (dP − Σ P·dP). `ds` may be `dp` if the types are the same.
void softmax_gradient(const Rows& rows, DType weights_dtype, const void* weights, const float* dp, void* ds,
                      device::Stream stream);
// From L and Σ O·dO instead of saved weights: P = exp(S − L) and dS = P ∘ (dP − Σ O·dO), dS from the unrounded P. S and
// dP are float, or all are double; P and dS have the dtype of O and dO, which are contiguous, and may overwrite S and
// dP if the types are the same.
struct GradientFromLse {
  const void *scores = nullptr, *dp = nullptr;
  void *weights = nullptr, *ds = nullptr;
  const void *out = nullptr, *dout = nullptr;
  std::int64_t head_dim = 1;
};
void softmax_gradient_from_lse(const Rows& rows, DType dtype, const GradientFromLse& of, const ConstLse& lse,
                               device::Stream stream);

// --- one operation per kernel
// ------------------------------------------------------------------------------------------

void scale(const Rows& rows, const float* from, float factor, DType to_dtype, void* to, device::Stream stream);
void mask(const Rows& rows, float* matrix, device::Stream stream);  // −∞ for masked keys
void row_max(const Rows& rows, const float* matrix, float* largest, device::Stream stream);
void subtract(const Rows& rows, const float* from, const float* of_row, float* to, device::Stream stream);
void exponential(const Rows& rows, const float* from, float* to, device::Stream stream);
void row_sum(const Rows& rows, const float* matrix, float* sum, device::Stream stream);
// to = from / of_row; a row without visible keys is divided by 1.
void divide(const Rows& rows, const float* from, const float* of_row, DType to_dtype, void* to, device::Stream stream);
// L = max + log(sum).
void log_sum(const Rows& rows, const float* largest, const float* sum, const Lse& lse, device::Stream stream);
void multiply(const Rows& rows, const float* left, DType right_dtype, const void* right, float* to,
              device::Stream stream);
// to = from − dot / sum, row by row.
void add_quotient(const Rows& rows, const float* from, const float* dot, const float* sum, float* to,
                  device::Stream stream);

// --- layout ---------------------------------------------------------------------------------------------------------

// Copies a four-dimensional tensor of one dtype between views of any strides.
void copy_view(const ConstTensorView& from, const TensorView& to, device::Stream stream);

}  // namespace syslab::attention::scores
