// The gate of a SwiGLU feed-forward layer, between its first two matrix products and its third.
//
//   out = silu(gate) ∘ up            silu(t) = t · σ(t),  σ(t) = 1/(1 + e^−t)
//   dup = dout ∘ silu(gate)          dgate = dout ∘ up ∘ σ(gate) ∘ (1 + gate ∘ (1 − σ(gate)))
//
// Source: Shazeer, "GLU Variants Improve Transformer", 2020; CS336 assignment 1.
#pragma once

#include <span>
#include <string>

#include "contract/pass.hpp"
#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::swiglu {

struct Problem {
  std::int64_t rows = 1, dim = 1;  // dim: d_ff
  DType dtype = DType::f32;        // of all tensors; computed in fp32 (fp64 for fp64), rounded once

  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// Each input read once, each output written once. `recompute`: the backward pass writes `out` too.
double forward_bytes(const Problem& problem);
double backward_bytes(const Problem& problem, bool recompute);
// An exponential and a division count as one operation each.
double forward_flops(const Problem& problem);
double backward_flops(const Problem& problem);

// All are (rows, dim), any row stride, elements of a row adjacent: gate and up may be the halves of one
// (rows, 2·dim) matrix. Outputs overlap nothing unless stated; an output that shares another tensor's memory also has
// its strides.
struct ForwardArgs {
  ConstTensorView gate, up;
  TensorView out;  // may be gate's or up's memory
};

struct BackwardArgs {
  ConstTensorView gate, up, dout;
  TensorView dgate, dup;  // may be gate's and up's memory
  TensorView out;         // no memory, or silu(gate) ∘ up recomputed; may be dout's memory
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);

struct Rung : ops::OperatorRung<Problem, ForwardArgs, BackwardArgs> {};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::swiglu
