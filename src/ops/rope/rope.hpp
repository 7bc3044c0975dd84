// Rotary position embedding: each pair (2k, 2k+1) of a head's elements is turned by an angle that grows with the
// position, so that scores depend on how far apart two tokens are.
//
//   angle = position · theta^(−2k/head_dim),   c = cos(angle), s = sin(angle)
//   out₁ = c·x₁ − s·x₂,   out₂ = s·x₁ + c·x₂                     backward: the transpose, turning back
//
// Where out₁ and out₂ go is the layout. Queries and keys turned alike give the same scores in either.
//
// Source: Su et al., "RoFormer", 2021; CS336 assignment 1, in its form of 2025 and of 2026.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/direction.hpp"
#include "ops/expect_tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::rope {

using ops::Direction;

enum class Layout {
  interleaved,  // 2025: out₁ at 2k, out₂ at 2k+1
  halves        // 2026: out₁ at k, out₂ at head_dim/2 + k
};
std::string_view to_string(Layout layout);

struct Problem {
  std::int64_t batch = 1, heads = 1, seq = 1, head_dim = 2;
  Layout layout = Layout::interleaved;
  DType x_dtype = DType::f32, y_dtype = DType::f32;  // equal; or f32 out of bf16 or f16, as autocast does

  DType tables() const { return ops::statistics_dtype(x_dtype); }  // of cos and sin
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// x read once, y written once, the tables read once; both passes alike.
double bytes(const Problem& problem);
double flops(const Problem& problem);  // six a pair

// Writes both tables, (context, head_dim/2) of f32 or f64 in the host's memory: computed in double, rounded once.
// Error(usage) unless head_dim is even and theta positive.
void fill_tables(std::int64_t context, std::int64_t head_dim, double theta, const TensorView& cos,
                 const TensorView& sin);

// x and y are (batch, heads, seq, head_dim), any strides but the last, which is 1: of a fused (batch, seq, 3, H,
// head_dim) buffer the 2·H heads of queries and keys are one view. Of the backward pass, x is the gradient of the
// forward pass's result (y_dtype, in its layout) and y that of its argument (x_dtype).
struct Args {
  ConstTensorView x;
  ConstTensorView cos, sin;  // (at least seq, head_dim/2), contiguous; row p is position p
  TensorView y;              // may be x's memory, with its dtype and strides
};

// Throws Error(usage) naming the field or tensor, what it holds and what it must hold.
void validate(const Problem& problem);
void validate(const Problem& problem, const Args& args, Direction direction);

struct Rung : ops::RungInfo {
  // Why this rung cannot take the problem in this direction; nothing when it can.
  std::function<std::optional<std::string>(const Problem&, Direction)> supports;
  std::function<std::size_t(const Problem&, Direction)> workspace_bytes;
  // Preconditions: validate() passed, supports() said nothing. Work is queued on the stream, nothing waits or
  // allocates. On the CPU the work is done on return.
  std::function<void(const Problem&, const Args&, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const Args&, ops::Workspace, device::Stream)> backward;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::rope
