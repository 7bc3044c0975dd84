// The norm of all gradients, and the factor that keeps it below a limit (gradient clipping).
//
//   norm = grad_scale · √(Σ g²)            factor = min(1, max_norm / (norm + 1e-6))
//
// Squares are computed and summed in double in an order that depends only on length and alignment: equal inputs at
// equally aligned addresses give equal bits, and integers an exact sum. Results stay in device memory. With an infinity
// the norm is ∞ and the factor 0 (1 without clipping), with a NaN both are NaN; `non_finite` counts such elements, for
// loss scaling and for locating the first of them.
//
// Source: CS336 assignment 1, gradient clipping.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/expect_tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::global_norm {

struct Problem {
  std::int64_t elements = 1;
  DType dtype = DType::f32;  // of g

  DType statistics() const { return ops::statistics_dtype(dtype); }  // of norm, factor, grad_scale
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

double norm_bytes(const Problem& problem);  // g read once

// g is contiguous; outputs overlap nothing.
struct NormArgs {
  ConstTensorView g;                                          // (elements)
  TensorView norm, factor;                                    // (1)
  std::int64_t* non_finite = nullptr;                         // device memory; null: not counted
  ConstTensorView grad_scale;                                 // (1), 1 / loss scale; no memory: 1
  double max_norm = std::numeric_limits<double>::infinity();  // > 0; ∞ clips nothing
  bool add_to_count = false;                                  // non_finite += instead of =
};

// g ← g · factor, in fp32 (fp64 for fp64), rounded once.
struct ScaleArgs {
  TensorView g;            // (elements)
  ConstTensorView factor;  // (1)
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const NormArgs& args);
void validate(const Problem& problem, const ScaleArgs& args);

struct Rung : RungInfo {
  // Why this rung cannot take the problem; nothing if it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  std::function<std::size_t(const Problem&)> workspace_bytes;  // of norm
  // Preconditions: validate() passed, supports() returned nothing, the workspace has the required size. Work is queued
  // on the stream without waiting or allocating. On the CPU the work is done on return.
  std::function<void(const Problem&, const NormArgs&, ops::Workspace, device::Stream)> norm;
  std::function<void(const Problem&, const ScaleArgs&, device::Stream)> scale;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::global_norm
