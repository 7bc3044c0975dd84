// Scaled dot-product attention: the problem, its tensors, and the rungs of its ladder.
//
//   S = scale · Q·Kᵀ,  P = softmax over keys of the unmasked S,  O = P·V,  L_i = log Σ_j exp(S_ij)
//
// Source: Dao, "FlashAttention-2" (2023), section 2.1; CS336 assignment 2, section on FlashAttention-2.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "contract/pass.hpp"
#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::attention {

// Which keys a query may see. `top_left`: query i sees keys j ≤ i (the hand-out's causal mask). `bottom_right`: j ≤ i +
// (seq_k − seq_q), so that the last query sees all keys (decoding). A query that sees no key has O = 0, L = −∞, and
// contributes nothing to any gradient.
enum class Mask { none, top_left, bottom_right };

std::string_view to_string(Mask mask);

struct Problem {
  std::int64_t batch = 1;
  std::int64_t heads_q = 1;
  std::int64_t heads_kv = 1;  // divides heads_q; query head h reads key/value head h / (heads_q / heads_kv)
  std::int64_t seq_q = 1;
  std::int64_t seq_k = 1;
  std::int64_t head_dim = 1;  // 1 … 256
  float scale = 0.0F;         // 0: 1/√head_dim
  Mask mask = Mask::none;
  DType dtype = DType::f32;  // of Q, K, V, O and their gradients
  bool tf32 = false;         // factors of products may be rounded to TF32; set from the rung, for the oracle
  bool repeatable = false;   // wants equal bits of equal inputs: `deterministic` of a library's options

  float effective_scale() const;
  // How many keys, from the first on, query `row` sees, in [0, seq_k].
  std::int64_t visible_keys(std::int64_t row) const;
  // Unmasked (query, key) pairs of one head: the part of S² that is computed.
  std::int64_t visible_pairs() const;
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// Multiplications and additions of the matrix products over unmasked pairs: forward 4·B·H·pairs·D, backward 2.5 times
// that (five products; a kernel that recomputes more gets no credit for it).
double forward_flops(const Problem& problem);
double backward_flops(const Problem& problem);
// Each input read once, each output written once.
double forward_bytes(const Problem& problem);
double backward_bytes(const Problem& problem);

// All tensors are four-dimensional with any strides but unit last stride, and must not overlap outputs.
//   q, out, dout, dq   (batch, heads_q,  seq_q, head_dim)  problem.dtype
//   k, v, dk, dv       (batch, heads_kv, seq_k, head_dim)  problem.dtype
//   lse                (batch, heads_q,  seq_q)            fp32, natural logarithm, any strides
// The reference rung takes fp64 tensors throughout, lse included.
struct ForwardArgs {
  ConstTensorView q, k, v;
  TensorView out, lse;
};

struct BackwardArgs {
  ConstTensorView q, k, v, out, lse, dout;
  TensorView dq, dk, dv;
};

// Throws Error(usage) if the problem is invalid (with the field, its value and the allowed values), or if a tensor does
// not have the shape, dtype or unit last stride above.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);

struct Rung : ops::OperatorRung<Problem, ForwardArgs, BackwardArgs> {
  // For rungs in another process: time of the last call by their own clock. Empty for ours.
  std::function<Nanoseconds()> last_call_time;
};

// From slowest and clearest to fastest, for people to read; ops/attention/dispatch.hpp decides which is used. Names are
// unique.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);
}  // namespace syslab::attention
