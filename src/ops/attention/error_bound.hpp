// How far from the exact result a correct attention kernel may be, element by element.
//
// The model. Inputs are exact. Products are accumulated in fp32 (unit roundoff u; fp64 for fp64 tensors) in any order
// made of contiguous ranges of the reduction, with or without fused multiply-adds; outputs are rounded once to storage
// (unit u_s). In half precision P̃ and dS may be rounded to storage before they enter a product, as the hand-out does.
// Roundings are taken as independent and of mean zero (Higham & Mary 2019), so n of them, each at most c, stay below
// λ·√n·c; λ = 4 is more than nine standard deviations of an error spread evenly over its interval. If the worst case
// γ_n is smaller, it is used. exp and log may err by kFunctionUlps units.
//
// Forward, row i, sums over visible keys j, n keys:
//   score       δ_i = g(D + 6)·|scale|·‖q_i‖·max_j‖k_j‖     Cauchy-Schwarz for Σ|q||k|; 6: scale, shift, base of exp
//   softmax     P̂_ij = P_ij·exp(δ_ij)/Σ P exp(δ): the change of O is at most κ(δ)·Σ_j P_ij·|V_jd − O_id| with κ(δ) =
//               e^δ·(e^δ − 1); as δ_ij are independent over j, (κ(δ)/δ)·λ·σ·√Σ P²(V − O)² serves where smaller.
//               Never more than the spread of V, since any softmax is a convex combination.
//   row sum     g(2n)·|O_id|, and functions: kFunctionUlps·u·|O|
//   product     g(2n + n/16)·2·max_l |Σ_{j ≤ l} P_ij V_jd|: every partial sum over a contiguous range is a difference
//               of two prefixes; n/16 rescalings
//   cast of P̃   λ·u_s·√Σ(P V)², and fp16's subnormals: λ·2⁻²⁵·√ΣV²
//   TF32        both factors of every product rounded, u_t = 2⁻¹¹: √2·u_t‖q‖‖k‖ is added to σ_i, 2·u_t‖q‖‖k‖ to δ_i,
//               √2·u_t‖dO‖‖v‖ to σ_ζ, and the cast's unit is √2·u_t, of P̃ and V, of dS and K or Q, of P̃ and dO. A row's
//               q is rounded once for all its keys: that part of δ_ij does not average out of L, which may move by all
//               of it, u_t‖q‖‖k‖
//   storage     u_s·|O| + half a subnormal
//   L           min(δ, (κ/δ)·λσ·√ΣP²) + g(2n)u… of the sum + function errors + 4u·(|L| + |m|)
//
// Backward, with X = dP − D_i, with inputs O and L rounded within their forward bounds β_O, β_L:
//   P           relative τ_i² = σ_i² + (β_L/λ)² over independent rows; β_L is common to a row
//   dP          σ_ζ = u·√D·‖dO_i‖·max_j‖v_j‖
//   D_i         ξ_i = λ·(u·√D·‖dO_i‖·‖O_i‖ + √Σ_d(β_O,id·dO_id)²), common to a row
//   dV_jd       λ·√Σ_i P²(τ_i² + u_s²)dO² + product + cast + storage
//   dQ_id       |scale|·(λ·√Σ_j (P²(σ_i²X² + σ_ζ²) + 2u_s²dS² + t²X²)K² + ξ_i·|Σ_j P K| + product) + β_L·|dQ| + storage
//   dK_jd       |scale|·(λ·√Σ_i (P²(τ_i²X² + (σ_ζ + ξ_i/λ)²) + 2u_s²dS² + t²X²)Q² + product) + storage
//   subnormals  fp16's are 2⁻²⁴ apart: a cast result below 2⁻¹⁴ may err by t = 2⁻²⁵ whatever its size, P̃ by all of
//               itself. A dV that is made of it errs by t·|dO|, a dS that is made of a P̃ which was kept in storage (as
//               frameworks keep it) by t·|X|, and its own cast adds t: λ·t·√ΣdO², t²X² above, and λ·t·√ΣK² or λ·t·√ΣQ²
//   underflow   P and dS below fp32's smallest normal may be flushed to zero: that much is added to P's error, and
//               |X| + 1 times that to dS's
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"
#include "core/host_device.hpp"
#include "core/rounding.hpp"

namespace syslab::attention {

inline constexpr double kLambda = 4.0;
// bf16's: what a kernel may round P̃ and dS to that promises the hand-out's tolerance and no arithmetic. 1e-2 covers it
// in sums as long as those of the hand-out's tests; in longer ones it grows with the root of their length.
inline constexpr double kHalfWeights = 0x1p-9;
// Of exp and log, relative, in units of the accumulation's roundoff u (4u of fp32 are 2⁻²²); the rounding of their
// argument is the score's error. Held by tests on a CPU: flash_tiled's 2^x in every instruction set
// (attention_flash_test.cpp), and exp and log of the C library, which the naive and reference kernels call
// (attention_error_bound_test.cpp). By NVIDIA's documents on a GPU: ex2.approx.ftz.f32 (ptx::exp2_approx, __expf) 2⁻²²,
// exp2f two units in the last place, which is the same; expf, logf and log2f one, as exp and log in double precision.
inline constexpr double kFunctionUlps = 4.0;

// Units of one problem's arithmetic and storage.
struct ErrorModel {
  double unit = 0;          // of accumulation
  double storage_unit = 0;  // of outputs
  double cast_unit = 0;     // of P̃ and dS if a kernel casts them; 0 unless storage is half precision
  double factor_unit = 0;   // of every factor of a product, if a kernel rounds them to TF32
  double storage_tiny = 0;  // largest absolute error of a result that underflows in storage
  double cast_tiny = 0;     // the same for P̃ and dS
  double tiny = 0;          // the same for accumulation, flushed to zero

  // `weights_unit`: P̃ and dS may be rounded so, whatever the dtype.
  static ErrorModel of(DType dtype, bool tf32 = false, double weights_unit = 0);
  // min(γ_n, λ·√n·u), n may be fractional.
  SYSLAB_HOST_DEVICE double g(double roundings) const;
};

// κ(δ) = e^δ(e^δ − 1): how much a softmax can move when its scores move by δ. Grows linearly beyond δ = 40, where the
// callers' caps apply.
SYSLAB_HOST_DEVICE double kappa(double delta);

// Bounds for one query row.
struct RowError {
  double visible = 0;      // keys
  double score_sigma = 0;  // σ_i: scale of one score's error
  double score_bound = 0;  // δ_i
  double squares = 0;      // Σ P²
  double lse_bound = 0;    // β_L
};

SYSLAB_HOST_DEVICE RowError row_error(const ErrorModel& model, std::int64_t head_dim, double scale, double q_norm,
                                      double k_norm, double visible, double squares, double lse, double largest_score);

// Sums over keys for one output element.
struct OutSums {
  double value = 0;      // O
  double absolute = 0;   // Σ P|V|
  double squares = 0;    // Σ (P V)²
  double prefix = 0;     // max |Σ_{j ≤ l} P V|
  double v_squares = 0;  // Σ V²
  double v_largest = 0;  // max |V|
};

SYSLAB_HOST_DEVICE double out_bound(const ErrorModel& model, const RowError& row, const OutSums& sums);

// Sums over the reduction for one element of a gradient.
struct GradientSums {
  double value = 0;
  double error_squares = 0;  // Σ (error of the factor · other factor)², casts included, without λ
  double prefix = 0;         // of the product
  double other_squares = 0;  // Σ (other factor)²: for casts that underflow
  double length = 0;         // of the reduction
  double coherent = 0;       // errors that do not average out: added in full
};

SYSLAB_HOST_DEVICE double gradient_bound(const ErrorModel& model, double scale, const GradientSums& sums);

// --- the formulas, in this header because the GPU oracle evaluates them too -----------------------------------

SYSLAB_HOST_DEVICE inline double ErrorModel::g(double roundings) const {
  const auto whole = static_cast<std::int64_t>(std::ceil(roundings));
  return std::min(gamma(whole, unit), gamma_probable(whole, unit, kLambda));
}

SYSLAB_HOST_DEVICE inline double kappa(double delta) {
  constexpr double kLimit = 40.0;
  const double bounded = std::min(delta, kLimit);
  return std::exp(bounded) * std::expm1(bounded) * std::max(1.0, delta / kLimit);
}

SYSLAB_HOST_DEVICE inline RowError row_error(const ErrorModel& model, std::int64_t head_dim, double scale,
                                             double q_norm, double k_norm, double visible, double squares, double lse,
                                             double largest_score) {
  RowError row;
  row.visible = visible;
  row.squares = squares;
  if (visible == 0) return row;
  const auto roundings = static_cast<double>(head_dim + 6);
  const double magnitude = std::abs(scale) * q_norm * k_norm;
  // Products that underflow lose up to `tiny` each.
  const double flushed = roundings * model.tiny * std::max(1.0, std::abs(scale));
  // √Σ(q·k)² ≤ ‖q‖‖k‖, with both factors rounded.
  row.score_sigma = (std::sqrt(roundings) * model.unit + std::sqrt(2.0) * model.factor_unit) * magnitude + flushed;
  row.score_bound = (model.g(roundings) + 2 * model.factor_unit) * magnitude + flushed;
  const double growth = row.score_bound > 0 ? kappa(row.score_bound) / row.score_bound : 1.0;
  const double common = model.factor_unit * magnitude;  // q's rounding, the same for all keys of the row
  const double averaged = growth * (kLambda * row.score_sigma * std::sqrt(squares) + common);
  row.lse_bound = std::min(row.score_bound, averaged) + model.g(2 * visible) + 2 * kFunctionUlps * model.unit +
                  4 * model.unit * (std::abs(lse) + std::abs(largest_score));
  return row;
}

SYSLAB_HOST_DEVICE inline double out_bound(const ErrorModel& model, const RowError& row, const OutSums& sums) {
  const double size = std::abs(sums.value);
  const double growth = kappa(row.score_bound);
  const double worst = growth * (sums.absolute + size);
  // √Σ P²(V − O)² ≤ √(2·(Σ P²V² + O²ΣP²))
  const double spread = std::sqrt(2 * (sums.squares + size * size * row.squares));
  const double averaged = row.score_bound > 0 ? growth / row.score_bound * kLambda * row.score_sigma * spread : 0.0;
  const double softmax = std::min(std::min(worst, averaged), 2 * sums.v_largest);
  const double row_sum = (model.g(2 * row.visible) + kFunctionUlps * model.unit) * size;
  const double functions = kFunctionUlps * model.unit * kLambda * std::sqrt(sums.squares);
  const double product = model.g(row.visible * (2 + 1.0 / 16) + 1) * 2 * sums.prefix;
  const double cast =
      kLambda * (model.cast_unit * std::sqrt(sums.squares) + model.cast_tiny * std::sqrt(sums.v_squares));
  const double flushed = row.visible * model.tiny * (1 + sums.v_largest);
  return softmax + row_sum + functions + product + cast + flushed + model.storage_unit * size + model.storage_tiny;
}

SYSLAB_HOST_DEVICE inline double gradient_bound(const ErrorModel& model, double scale, const GradientSums& sums) {
  const double size = std::abs(scale);
  const double random = kLambda * std::sqrt(sums.error_squares);
  const double product = model.g(sums.length * (2 + 1.0 / 16) + 1) * 2 * sums.prefix;
  const double underflow =
      kLambda * model.cast_tiny * std::sqrt(sums.other_squares) * std::max(1.0, 1.0 / size) + sums.length * model.tiny;
  return size * (random + product + underflow) + sums.coherent +
         (2 * kFunctionUlps * model.unit + model.storage_unit) * std::abs(sums.value) + model.storage_tiny;
}

}  // namespace syslab::attention
