// Root-mean-square normalisation of rows, fused with the residual addition before it.
//
//   h = x, or x + delta                 the residual stream, rounded to x's dtype and kept
//   rstd = 1/√(mean_d h² + eps)         of the rounded h, one a row
//   y_d = w_d · (h_d · rstd)
//
//   with g = w ∘ dy and c = mean_d(g_d · h_d · rstd):
//   dx_d = rstd · (g_d − h_d · rstd · c) + dh_d        dh: the gradient that reaches h past the norm
//   dw_d = Σ_rows dy_d · h_d · rstd
//
// Source: Zhang & Sennrich, "Root Mean Square Layer Normalization", 2019; CS336 assignment 1 (eps, order of products).
#pragma once

#include <span>
#include <string>

#include "contract/pass.hpp"
#include "core/tensor.hpp"
#include "ops/expect_tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::rms_norm {

struct Problem {
  std::int64_t rows = 1, dim = 1;
  double eps = 1e-5;
  DType x_dtype = DType::f32;  // of x, h and dx
  DType w_dtype = DType::f32;  // f32; f64 where x is f64
  DType y_dtype = DType::f32;  // of y and dy
  bool add = false;            // h = x + delta

  DType statistics() const { return ops::statistics_dtype(x_dtype); }  // of rstd and dw
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// Each input read once, each output written once. delta has y's dtype, dh x's.
double forward_bytes(const Problem& problem);
double backward_bytes(const Problem& problem, bool with_dh);
// Multiplications, additions and one square root per row.
double forward_flops(const Problem& problem);
double backward_flops(const Problem& problem, bool with_dh);

// Matrices are (rows, dim), any row stride, elements of a row adjacent. Outputs overlap nothing unless stated; an
// output that shares another tensor's memory also has its strides.
struct ForwardArgs {
  ConstTensorView x, delta;  // delta: y's dtype, or what Rung::takes_any_delta grants; no memory unless `add`
  ConstTensorView w;         // (dim)
  TensorView h;              // x_dtype; may be x's memory; no memory unless `add`
  TensorView y;
  TensorView rstd;  // (rows)
};

struct BackwardArgs {
  ConstTensorView dy, h, w, rstd;
  ConstTensorView dh;       // x's dtype; no memory: no gradient
  TensorView dx;            // may be dh's memory
  TensorView dw;            // (dim)
  bool accumulate = false;  // dw += instead of dw =
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);

struct Rung : ops::OperatorRung<Problem, ForwardArgs, BackwardArgs> {
  bool takes_any_delta = true;  // delta in fp32, fp16 or bf16 for any y; otherwise only in y's dtype
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::rms_norm
