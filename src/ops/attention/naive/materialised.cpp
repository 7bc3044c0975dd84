// `literal` and `fused_softmax`: matrices of scores of the whole batch, written and read again an operation at a time.
// Products go head by head through BLAS, in blocks of rows, what is done to each element goes through loops over rows.
#include "ops/attention/naive/materialised.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "device/blas.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/parallel.hpp"
#include "ops/attention/naive/heads.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/call_memory.hpp"

namespace syslab::attention {
namespace {

// Divides memory into arrays of floats, const for who only reads.
template <typename Float>
class BasicFloats {
 public:
  explicit BasicFloats(std::conditional_t<std::is_const_v<Float>, const void, void>* begin)
      : next_(static_cast<Float*>(begin)) {}
  Float* take(std::int64_t count) { return std::exchange(next_, next_ + count); }

 private:
  Float* next_;
};
using Floats = BasicFloats<float>;

std::int64_t heads(const Problem& p) { return p.batch * p.heads_q; }
std::int64_t rows(const Problem& p) { return heads(p) * p.seq_q; }
std::int64_t matrix(const Problem& p) { return rows(p) * p.seq_k; }
std::int64_t query_floats(const Problem& p) { return p.seq_q * p.head_dim; }
std::int64_t key_floats(const Problem& p) { return p.seq_k * p.head_dim; }
// One head of each tensor, in the form that BLAS takes: Q, O and K, V; backward dO, dQ and dK, dV as well.
std::int64_t head_floats(const Problem& p, Pass pass) {
  return (pass == Pass::forward ? 2 : 4) * (query_floats(p) + key_floats(p));
}
std::size_t bytes_of(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

std::size_t literal_workspace(const Problem& p, Pass pass) {
  return bytes_of((pass == Pass::forward ? 2 : 4) * matrix(p) + head_floats(p, pass));
}
std::size_t fused_workspace(const Problem& p, Pass pass) {
  return bytes_of((pass == Pass::forward ? 0 : 1) * matrix(p) + head_floats(p, pass));
}

using device::NvtxRange;
using device::RangeKind;

// Calls body(row, visible) for every row of scores, on threads if there is enough work. Profilers see the name of the
// operation, as they see a kernel's on a GPU.
template <typename Body>
void for_rows(const Problem& p, const char* operation, const Body& body) {
  const NvtxRange range(operation, RangeKind::kernel, {}, "host loops");
  constexpr std::int64_t kElementsOfAThread = std::int64_t{1} << 18, kBlock = 16;
  const std::int64_t threads = std::clamp<std::int64_t>(matrix(p) / kElementsOfAThread, 1, device::thread_count());
  device::parallel_for((rows(p) + kBlock - 1) / kBlock,
                       [&](std::int64_t block, int) {
                         for (std::int64_t row = block * kBlock; row < std::min((block + 1) * kBlock, rows(p)); ++row) {
                           body(row, p.visible_keys(row % p.seq_q));
                         }
                       },
                       static_cast<int>(threads));
}

struct Place {
  std::int64_t index, batch, head, group;
};

// body for every (batch, query head), in order: heads of a group follow each other.
template <typename Body>
void for_heads(const Problem& p, const Body& body) {
  for (std::int64_t index = 0; index < heads(p); ++index) {
    const std::int64_t head = index % p.heads_q;
    body(Place{index, index / p.heads_q, head, head / (p.heads_q / p.heads_kv)});
  }
}

// device::sgemm, on threads if there is enough work. Rows of C are divided into blocks that do not depend on the number
// of threads, and each block is multiplied by one thread, so the bits of the result do not depend on it either.
void multiply(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
              const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
              std::int64_t ldc) {
  constexpr std::int64_t kRows = 128;
  constexpr double kFlopsOfAThread = 0x1p25;  // as in threads_worth()
  const std::int64_t blocks = (m + kRows - 1) / kRows;
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto threads = static_cast<int>(std::clamp(flops / kFlopsOfAThread, 1.0, static_cast<double>(blocks)));
  device::parallel_for(
      blocks,
      [&](std::int64_t block, int) {
        const std::int64_t row = block * kRows;
        device::sgemm(transpose_a, transpose_b, std::min(kRows, m - row), n, k, alpha,
                      a + (transpose_a ? row : row * lda), lda, b, ldb, beta, c + row * ldc, ldc);
      },
      threads);
}

// scores = factor·left·rightᵀ, head by head; left has rows of queries, right of keys.
void products(const Problem& p, const ConstTensorView& left, const ConstTensorView& right, float factor, Floats scratch,
              float* scores) {
  const NvtxRange range("gemm", RangeKind::kernel, {}, "host BLAS");
  float *queries = scratch.take(query_floats(p)), *keys = scratch.take(key_floats(p));
  for_heads(p, [&](const Place& at) {
    load_floats(left, at.batch, at.head, queries);
    load_floats(right, at.batch, at.group, keys);
    multiply(false, true, p.seq_q, p.seq_k, p.head_dim, factor, queries, p.head_dim, keys, p.head_dim, 0.0F,
             scores + at.index * p.seq_q * p.seq_k, p.seq_k);
  });
}

// to = factor·weights·other, head by head: O = P·V, dQ = dS·K.
void times_keys(const Problem& p, const float* weights, const ConstTensorView& other, float factor, Floats scratch,
                const TensorView& to) {
  const NvtxRange range("gemm", RangeKind::kernel, {}, "host BLAS");
  float *keys = scratch.take(key_floats(p)), *sum = scratch.take(query_floats(p));
  for_heads(p, [&](const Place& at) {
    load_floats(other, at.batch, at.group, keys);
    multiply(false, false, p.seq_q, p.head_dim, p.seq_k, factor, weights + at.index * p.seq_q * p.seq_k, p.seq_k, keys,
             p.head_dim, 0.0F, sum, p.head_dim);
    store_floats(sum, to, at.batch, at.head);
  });
}

// to = Σ over the heads of a group of factor·weightsᵀ·other: dV = Pᵀ·dO, dK = dSᵀ·Q.
void turned_times_queries(const Problem& p, const float* weights, const ConstTensorView& other, float factor,
                          Floats scratch, const TensorView& to) {
  const NvtxRange range("gemm", RangeKind::kernel, {}, "host BLAS");
  float *queries = scratch.take(query_floats(p)), *sum = scratch.take(key_floats(p));
  const std::int64_t per_group = p.heads_q / p.heads_kv;
  for_heads(p, [&](const Place& at) {
    load_floats(other, at.batch, at.head, queries);
    multiply(true, false, p.seq_k, p.head_dim, p.seq_q, factor, weights + at.index * p.seq_q * p.seq_k, p.seq_k,
             queries, p.head_dim, at.head % per_group == 0 ? 0.0F : 1.0F, sum, p.head_dim);
    if (at.head % per_group == per_group - 1) store_floats(sum, to, at.batch, at.group);
  });
}

float& lse_at(const Problem& p, const TensorView& lse, std::int64_t row) {
  const std::int64_t head = row / p.seq_q;
  return element_of<float>(lse, head / p.heads_q, head % p.heads_q, row % p.seq_q);
}

constexpr float kNothingSeen = -std::numeric_limits<float>::infinity();

// --- literal --------------------------------------------------------------------------------------------------------

template <typename Float>
struct LiteralSaved {
  LiteralSaved(const Problem& p, BasicFloats<Float> floats)
      : exp(floats.take(matrix(p))), weights(floats.take(matrix(p))), sum(floats.take(rows(p))) {}

  Float *exp, *weights, *sum;
};

std::size_t literal_saved_bytes(const Problem& p) { return bytes_of(2 * matrix(p) + rows(p)); }

// weights = softmax(scaled) over the keys that a row sees, an operation at a time; `shifted` is memory for one of them.
void literal_softmax(const Problem& p, const TensorView& lse, const float* scaled, float* shifted,
                     const LiteralSaved<float>& kept) {
  const NvtxRange part("softmax", RangeKind::part);
  const std::int64_t n = p.seq_k;
  for_rows(p, "shift", [&](std::int64_t row, std::int64_t visible) {
    const float* from = scaled + row * n;
    const float largest = visible == 0 ? kNothingSeen : *std::max_element(from, from + visible);
    for (std::int64_t j = 0; j < visible; ++j) shifted[row * n + j] = from[j] - largest;
    std::fill(shifted + row * n + visible, shifted + (row + 1) * n, kNothingSeen);
    lse_at(p, lse, row) = largest;  // the logarithm of the sum comes on top
  });
  for_rows(p, "exp", [&](std::int64_t row, std::int64_t) {
    for (std::int64_t j = 0; j < n; ++j) kept.exp[row * n + j] = std::exp(shifted[row * n + j]);
  });
  for_rows(p, "row_sum", [&](std::int64_t row, std::int64_t visible) {
    float sum = 0;
    for (std::int64_t j = 0; j < visible; ++j) sum += kept.exp[row * n + j];
    kept.sum[row] = visible == 0 ? 1.0F : sum;  // 0/1, not 0/0
    lse_at(p, lse, row) += std::log(kept.sum[row]);
  });
  for_rows(p, "divide", [&](std::int64_t row, std::int64_t) {
    for (std::int64_t j = 0; j < n; ++j) kept.weights[row * n + j] = kept.exp[row * n + j] / kept.sum[row];
  });
}

void literal_forward(const Problem& p, const ForwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                     device::Stream) {
  require_saved("literal", saved, literal_saved_bytes(p));
  const LiteralSaved<float> kept(p, Floats(saved.data));
  const ops::CallMemory memory(workspace, literal_workspace(p, Pass::forward), "attention scores");
  Floats floats(memory.data());
  float *one = floats.take(matrix(p)), *other = floats.take(matrix(p));
  float *scores = one, *scaled = other, *shifted = one;  // scores are not needed after they are scaled
  const std::int64_t n = p.seq_k;
  {
    const NvtxRange part("scores", RangeKind::part);
    products(p, args.q, args.k, 1.0F, floats, scores);
    const float scale = p.effective_scale();
    for_rows(p, "scale", [&](std::int64_t row, std::int64_t) {
      for (std::int64_t j = 0; j < n; ++j) scaled[row * n + j] = scores[row * n + j] * scale;
    });
  }
  literal_softmax(p, args.lse, scaled, shifted, kept);
  const NvtxRange part("values", RangeKind::part);
  times_keys(p, kept.weights, args.v, 1.0F, floats, args.out);
}

// The derivative of each line of the forward pass, the last line first: weights = exp/sum, exp, shifted, scaled.
void literal_backward(const Problem& p, const BackwardArgs& args, const Saved& saved, ops::Workspace workspace,
                      device::Stream) {
  require_saved("literal", saved, literal_saved_bytes(p));
  const LiteralSaved<const float> kept(p, BasicFloats<const float>(saved.data));
  const ops::CallMemory memory(workspace, literal_workspace(p, Pass::backward), "attention scores");
  Floats floats(memory.data());
  float *d_weights = floats.take(matrix(p)), *quotient = floats.take(matrix(p)), *product = floats.take(matrix(p)),
        *d_exp = floats.take(matrix(p));
  float *d_shifted = product, *d_scores = quotient;  // not needed any more by then
  const std::int64_t n = p.seq_k;
  {
    const NvtxRange part("values", RangeKind::part);
    products(p, args.dout, args.v, 1.0F, floats, d_weights);
    turned_times_queries(p, kept.weights, args.dout, 1.0F, floats, args.dv);
  }
  std::optional<NvtxRange> part;
  part.emplace("softmax", RangeKind::part);
  for_rows(p, "divide", [&](std::int64_t row, std::int64_t) {
    for (std::int64_t j = 0; j < n; ++j) quotient[row * n + j] = d_weights[row * n + j] / kept.sum[row];
  });
  for_rows(p, "multiply", [&](std::int64_t row, std::int64_t) {
    for (std::int64_t j = 0; j < n; ++j) product[row * n + j] = d_weights[row * n + j] * kept.weights[row * n + j];
  });
  for_rows(p, "row_sum", [&](std::int64_t row, std::int64_t visible) {
    float sum = 0;
    for (std::int64_t j = 0; j < visible; ++j) sum += product[row * n + j];
    const float d_sum = -sum / kept.sum[row];
    for (std::int64_t j = 0; j < n; ++j) d_exp[row * n + j] = quotient[row * n + j] + d_sum;
  });
  for_rows(p, "multiply", [&](std::int64_t row, std::int64_t) {
    for (std::int64_t j = 0; j < n; ++j) d_shifted[row * n + j] = d_exp[row * n + j] * kept.exp[row * n + j];
  });
  part.emplace("scores", RangeKind::part);
  const float scale = p.effective_scale();
  for_rows(p, "scale", [&](std::int64_t row, std::int64_t) {
    for (std::int64_t j = 0; j < n; ++j) d_scores[row * n + j] = d_shifted[row * n + j] * scale;
  });
  times_keys(p, d_scores, args.k, 1.0F, floats, args.dq);
  turned_times_queries(p, d_scores, args.q, 1.0F, floats, args.dk);
}

// --- fused_softmax --------------------------------------------------------------------------------------------------

void fused_forward(const Problem& p, const ForwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                   device::Stream) {
  require_saved("fused_softmax", saved, bytes_of(matrix(p)));
  const ops::CallMemory memory(workspace, fused_workspace(p, Pass::forward), "attention scores");
  float* weights = static_cast<float*>(saved.data);
  {
    const NvtxRange part("scores", RangeKind::part);
    products(p, args.q, args.k, p.effective_scale(), Floats(memory.data()), weights);
  }
  for_rows(p, "softmax", [&](std::int64_t row, std::int64_t visible) {
    float* scores = weights + row * p.seq_k;
    std::fill(scores + visible, scores + p.seq_k, 0.0F);
    lse_at(p, args.lse, row) = kNothingSeen;
    if (visible == 0) return;
    const float largest = *std::max_element(scores, scores + visible);
    float sum = 0;
    for (std::int64_t j = 0; j < visible; ++j) sum += scores[j] = std::exp(scores[j] - largest);
    const float inverse = 1.0F / sum;
    for (std::int64_t j = 0; j < visible; ++j) scores[j] *= inverse;
    lse_at(p, args.lse, row) = largest + std::log(sum);
  });
  const NvtxRange part("values", RangeKind::part);
  times_keys(p, weights, args.v, 1.0F, Floats(memory.data()), args.out);
}

void fused_backward(const Problem& p, const BackwardArgs& args, const Saved& saved, ops::Workspace workspace,
                    device::Stream) {
  require_saved("fused_softmax", saved, bytes_of(matrix(p)));
  const ops::CallMemory memory(workspace, fused_workspace(p, Pass::backward), "attention scores");
  const float* weights = static_cast<const float*>(saved.data);
  Floats floats(memory.data());
  float* ds = floats.take(matrix(p));  // dP until the softmax's derivative replaces it in place
  {
    const NvtxRange part("values", RangeKind::part);
    products(p, args.dout, args.v, 1.0F, floats, ds);
    turned_times_queries(p, weights, args.dout, 1.0F, floats, args.dv);
  }
  for_rows(p, "softmax", [&](std::int64_t row, std::int64_t visible) {
    const float* weight = weights + row * p.seq_k;
    float* to = ds + row * p.seq_k;
    float dot = 0;  // Σ P·dP, which is Σ O·dO
    for (std::int64_t j = 0; j < visible; ++j) dot += weight[j] * to[j];
    for (std::int64_t j = 0; j < p.seq_k; ++j) to[j] = weight[j] * (to[j] - dot);
  });
  const NvtxRange part("scores", RangeKind::part);
  times_keys(p, ds, args.k, p.effective_scale(), floats, args.dq);
  turned_times_queries(p, ds, args.q, p.effective_scale(), floats, args.dk);
}

AutogradRung keeping_matrices(const char* name, const char* teaches) {
  AutogradRung rung;
  rung.name = name;
  rung.teaches = teaches;
  rung.dtypes = {DType::f32, DType::bf16, DType::f16};
  rung.supports = [dtypes = rung.dtypes](const Problem& problem, Pass) { return refuse_dtype(dtypes, problem); };
  return rung;
}

}  // namespace

AutogradRung literal_rung() {
  AutogradRung rung = keeping_matrices("literal", "the formula an operation at a time; keeps exp and weights");
  rung.role = Role::literal;
  rung.saved_bytes = literal_saved_bytes;
  rung.workspace_bytes = literal_workspace;
  rung.forward = literal_forward;
  rung.backward = literal_backward;
  return rung;
}

AutogradRung fused_softmax_rung() {
  AutogradRung rung = keeping_matrices("fused_softmax", "softmax in place, forward and back; keeps the weights");
  rung.role = Role::intermediate;
  rung.saved_bytes = [](const Problem& p) { return bytes_of(matrix(p)); };
  rung.workspace_bytes = fused_workspace;
  rung.forward = fused_forward;
  rung.backward = fused_backward;
  return rung;
}

}  // namespace syslab::attention
