// How far from the exact result a correct attention kernel may be, element by element.
//
// The model. Inputs are exact. Products are accumulated in fp32 (unit roundoff u; fp64 for fp64 tensors) in any order
// made of contiguous ranges of the reduction, with or without fused multiply-adds; outputs are rounded once to storage
// (unit u_s). In half precision P̃ and dS may be rounded to storage before they enter a product, as the hand-out does.
// Roundings are taken as independent and of mean zero (Higham & Mary 2019), so n of them, each at most c, stay below
// λ·√n·c; λ = 4 is more than nine standard deviations of an error spread evenly over its interval. Where the worst case
// γ_n is smaller, it serves. exp and log may err by kFunctionUlps units.
//
// Forward, row i, sums over visible keys j, n keys:
//   score       δ_i = g(D + 6)·|scale|·‖q_i‖·max_j‖k_j‖     Cauchy-Schwarz for Σ|q||k|; 6: scale, shift, base of exp
//   softmax     P̂_ij = P_ij·exp(δ_ij)/Σ P exp(δ): the change of O is at most κ(δ)·Σ_j P_ij·|V_jd − O_id| with κ(δ) =
//               e^δ·(e^δ − 1); as δ_ij are independent over j, (κ(δ)/δ)·λ·σ·√Σ P²(V − O)² serves where smaller.
//               Never more than the spread of V, since any softmax is a convex combination.
//   row sum     g(2n)·|O_id|, and functions: kFunctionUlps·u·|O|
//   product     g(2n + n/16)·2·max_l |Σ_{j ≤ l} P_ij V_jd|: every partial sum over a contiguous range is a difference
//   of
//               two prefixes; n/16 rescalings
//   cast of P̃   λ·u_s·√Σ(P V)², and fp16's subnormals: λ·2⁻²⁵·√ΣV²
//   storage     u_s·|O| + half a subnormal
//   L           min(δ, (κ/δ)·λσ·√ΣP²) + g(2n)u… of the sum + function errors + 4u·(|L| + |m|)
//
// Backward, with X = dP − D_i, taking O and L rounded within their forward bounds β_O, β_L as inputs:
//   P           relative τ_i² = σ_i² + (β_L/λ)² over independent rows; β_L is common to a row
//   dP          σ_ζ = u·√D·‖dO_i‖·max_j‖v_j‖
//   D_i         ξ_i = λ·(u·√D·‖dO_i‖·‖O_i‖ + √Σ_d(β_O,id·dO_id)²), common to a row
//   dV_jd       λ·√Σ_i P²(τ_i² + u_s²)dO² + product + cast + storage
//   dQ_id       |scale|·(λ·√Σ_j (P²(σ_i²X² + σ_ζ²) + 2u_s²dS²)K² + ξ_i·|Σ_j P K| + product) + β_L·|dQ| + storage
//   dK_jd       |scale|·(λ·√Σ_i (P²(τ_i²X² + (σ_ζ + ξ_i/λ)²) + 2u_s²dS²)Q² + product) + storage
//   underflow   P and dS below the smallest normal may be flushed to zero: that much is added to P's error, and |X| + 1
//               times that to dS's
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace syslab::attention {

inline constexpr double kLambda = 4.0;
inline constexpr double kFunctionUlps =
    4.0;  // exp, log: also what ours in vector_exp.hpp promise, and CUDA's fast ones

// Units of one problem's arithmetic and storage.
struct ErrorModel {
  double unit = 0;          // of accumulation
  double storage_unit = 0;  // of outputs
  double cast_unit = 0;     // of P̃ and dS when a kernel casts them; 0 where storage is not half precision
  double storage_tiny = 0;  // largest absolute error of a result that underflows in storage
  double cast_tiny = 0;     // the same for P̃ and dS
  double tiny = 0;          // the same for accumulation, flushed to zero

  static ErrorModel of(DType dtype);
  // min(γ_n, λ·√n·u), n may be fractional.
  double g(double roundings) const;
};

// κ(δ) = e^δ(e^δ − 1): how much a softmax can move when its scores move by δ. Linear growth is kept beyond δ = 40,
// where caller's caps rule.
double kappa(double delta);

// What is known of one query row.
struct RowError {
  double visible = 0;      // keys
  double score_sigma = 0;  // σ_i: scale of one score's error
  double score_bound = 0;  // δ_i
  double squares = 0;      // Σ P²
  double lse_bound = 0;    // β_L
};

RowError row_error(const ErrorModel& model, std::int64_t head_dim, double scale, double q_norm, double k_norm,
                   double visible, double squares, double lse, double largest_score);

// Sums over keys for one output element.
struct OutSums {
  double value = 0;      // O
  double absolute = 0;   // Σ P|V|
  double squares = 0;    // Σ (P V)²
  double prefix = 0;     // max |Σ_{j ≤ l} P V|
  double v_squares = 0;  // Σ V²
  double v_largest = 0;  // max |V|
};

double out_bound(const ErrorModel& model, const RowError& row, const OutSums& sums);

// Sums over the reduction for one element of a gradient.
struct GradientSums {
  double value = 0;
  double error_squares = 0;  // Σ (error of the factor · other factor)², casts included, without λ
  double prefix = 0;         // of the product
  double other_squares = 0;  // Σ (other factor)²: for casts that underflow
  double length = 0;         // of the reduction
  double coherent = 0;       // errors that do not average: added as they are
};

double gradient_bound(const ErrorModel& model, double scale, const GradientSums& sums);

}  // namespace syslab::attention
