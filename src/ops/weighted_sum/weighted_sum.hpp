// Weighted sum over the last dimension, the smallest operator with a forward and a backward pass: the worked example
// for adding an operator.
//
//   y_i = Σ_d w_d · x_id          dx_id = w_d · g_i,   dw_d = Σ_i x_id · g_i      (g = dL/dy)
//
// Source: CS336 assignment 2, the weighted-sum example.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "contract/pass.hpp"
#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::weighted_sum {

struct Problem {
  std::int64_t rows = 1;     // product of all dimensions of x except the last
  std::int64_t dim = 1;      // D
  DType dtype = DType::f32;  // of x, w, y and their gradients; sums are carried in fp32 (fp64 for fp64)

  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// A multiplication and an addition count as two. Backward: one product per element for dx, a product and a sum for dw.
double forward_flops(const Problem& problem);
double backward_flops(const Problem& problem);
// Each input read once, each output written once.
double forward_bytes(const Problem& problem);
double backward_bytes(const Problem& problem);

// Any row stride, elements of a row adjacent; outputs overlap nothing.
//   x, dx  (rows, dim)      w, dw  (dim)      y, dy  (rows)         all of problem.dtype
// The reference rung takes fp64 tensors.
struct ForwardArgs {
  ConstTensorView x, w;
  TensorView y;
};

struct BackwardArgs {
  ConstTensorView x, w, dy;
  TensorView dx, dw;
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);

struct Rung : ops::OperatorRung<Problem, ForwardArgs, BackwardArgs> {};

// From clearest to fastest. Names are unique.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);
// The fastest rung that supports the problem; Error(usage) with every rung's reason if none does.
const Rung& dispatch(const Problem& problem, Pass pass, device::Kind device);

}  // namespace syslab::weighted_sum
