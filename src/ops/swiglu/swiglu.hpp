// The gate of a SwiGLU feed-forward layer: what stands between its first two products and its third.
//
//   out = silu(gate) ∘ up            silu(t) = t · σ(t),  σ(t) = 1/(1 + e^−t)
//   dup = dout ∘ silu(gate)          dgate = dout ∘ up ∘ σ(gate) ∘ (1 + gate ∘ (1 − σ(gate)))
//
// Source: Shazeer, "GLU Variants Improve Transformer", 2020; CS336 assignment 1.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/direction.hpp"
#include "ops/rung.hpp"

namespace syslab::swiglu {

using ops::Direction;

struct Problem {
  std::int64_t rows = 1, dim = 1;  // dim: d_ff
  DType dtype = DType::f32;        // of all tensors; computed in fp32 (fp64 for fp64), rounded once

  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// Each input read once, each output written once. `recompute`: the backward pass writes `out` too.
double forward_bytes(const Problem& problem);
double backward_bytes(const Problem& problem, bool recompute);
// An exponential and a division count as one each.
double forward_flops(const Problem& problem);
double backward_flops(const Problem& problem);

// All are (rows, dim), rows any stride apart, elements of a row adjacent: gate and up may be the halves of one
// (rows, 2·dim) matrix. Outputs overlap nothing but what is said; what may be another tensor's memory has then its
// strides too.
struct ForwardArgs {
  ConstTensorView gate, up;
  TensorView out;  // may be gate's or up's memory
};

struct BackwardArgs {
  ConstTensorView gate, up, dout;
  TensorView dgate, dup;  // may be gate's and up's memory
  TensorView out;         // no memory, or silu(gate) ∘ up written again; may be dout's memory
};

// Throws Error(usage) naming the field or tensor, what it holds and what it must hold.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);

struct Rung : ops::RungInfo {
  // Why this rung cannot take the problem in this direction; nothing when it can.
  std::function<std::optional<std::string>(const Problem&, Direction)> supports;
  std::function<std::size_t(const Problem&, Direction)> workspace_bytes;
  // Preconditions: validate() passed, supports() said nothing. Work is queued on the stream, nothing waits or
  // allocates. On the CPU the work is done on return.
  std::function<void(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream)> backward;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::swiglu
