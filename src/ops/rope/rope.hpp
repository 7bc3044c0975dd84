// Rotary position embedding: each pair (2k, 2k+1) of a head's elements is rotated by an angle proportional to the
// position, so that scores depend on the distance between two tokens.
//
//   angle = position · theta^(−2k/head_dim),   c = cos(angle), s = sin(angle)
//   out₁ = c·x₁ − s·x₂,   out₂ = s·x₁ + c·x₂                     backward: the inverse rotation
//
// The layout is where out₁ and out₂ are stored. Queries and keys rotated alike give the same scores in either layout.
//
// Source: Su et al., "RoFormer", 2021; CS336 assignment 1, in its form of 2025 and of 2026.
#pragma once

#include <span>
#include <string>

#include "contract/pass.hpp"
#include "core/tensor.hpp"
#include "ops/expect_tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::rope {

enum class Layout {
  interleaved,  // 2025: out₁ at 2k, out₂ at 2k+1
  halves        // 2026: out₁ at k, out₂ at head_dim/2 + k
};
std::string_view to_string(Layout layout);

struct Problem {
  std::int64_t batch = 1, heads = 1, seq = 1, head_dim = 2;
  Layout layout = Layout::interleaved;
  DType x_dtype = DType::f32, y_dtype = DType::f32;  // equal; or f32 from bf16 or f16, as with autocast

  DType tables() const { return ops::statistics_dtype(x_dtype); }  // of cos and sin
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// x read once, y written once, the tables read once; the same for both passes.
double bytes(const Problem& problem);
double flops(const Problem& problem);  // six per pair

// Writes both tables, (context, head_dim/2) of f32 or f64 in host memory: computed in double, rounded once.
// Error(usage) unless head_dim is even and theta positive.
void fill_tables(std::int64_t context, std::int64_t head_dim, double theta, const TensorView& cos,
                 const TensorView& sin);

// x and y are (batch, heads, seq, head_dim), any strides with unit last stride: the 2·H heads of queries and keys in a
// fused (batch, seq, 3, H, head_dim) buffer are one view. In the backward pass, x is the gradient of the forward result
// (y_dtype, in its layout) and y that of its argument (x_dtype).
struct Args {
  ConstTensorView x;
  ConstTensorView cos, sin;  // (at least seq, head_dim/2), contiguous; row p is position p
  TensorView y;              // may be x's memory, with its dtype and strides
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const Args& args, Pass pass);

struct Rung : ops::OperatorRung<Problem, Args, Args> {};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::rope
