// AdamW over one contiguous arena of parameters: a step in one pass.
//
//   g ← g · grad_scale · clip
//   m ← β₁ m + (1 − β₁) g          v ← β₂ v + (1 − β₂) g²
//   p ← p − lr·wd · p                                        here with DecayOrder::before,
//   p ← p − step · m / (√v · root_factor + eps)
//   p ← p − lr·wd · p                                        here with DecayOrder::after
//
// The hand-out's eps (uncorrected) is added to the uncorrected √v: step = lr·√(1−β₂ᵗ)/(1−β₁ᵗ), root_factor = 1. A
// framework's (corrected) is added to the corrected √v: step = lr/(1−β₁ᵗ), root_factor = 1/√(1−β₂ᵗ).
//
// Values that change from step to step are in device memory (Scalars, the clip factor), so that a captured step can be
// replayed with another step's values.
//
// Source: Loshchilov & Hutter, "Decoupled weight decay regularization", 2019; CS336 assignment 1 (both years' order).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::adamw {

enum class DecayOrder { after, before };        // 2025's hand-out; 2026's, and the frameworks'
enum class EpsMode { uncorrected, corrected };  // the hand-out's; the frameworks'

struct Options {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  DecayOrder decay_order = DecayOrder::after;
  EpsMode eps_mode = EpsMode::uncorrected;
};

// The scalars of one step, in the precision of the kernel.
template <typename T>
struct StepNumbers {
  T beta1, rest1;               // β₁ and 1 − β₁
  T beta2, rest2;               // β₂ and 1 − β₂
  T step, root_factor, eps;     // see above
  T decay_before, decay_after;  // lr·wd if it applies here, else 0
  T grad_scale;                 // 1 / loss scale
};

// Plain bytes, copied to device memory before each step. Every value is computed in double and rounded once.
struct Scalars {
  StepNumbers<double> in_f64;
  StepNumbers<float> in_f32;
  std::int32_t skip;  // nonzero: the step changes nothing
  std::int32_t unused;
};

// For step t = 1, 2, …. Error(usage) for t < 1, betas outside [0, 1), eps or lr negative or not a number.
Scalars scalars_of(const Options& options, std::int64_t t, double grad_scale = 1, bool skip = false);

struct Problem {
  std::int64_t elements = 1;
  DType dtype = DType::f32;         // of p, m, v and g: fp32, fp64 for the reference
  std::optional<DType> copy_dtype;  // bf16 or fp16: the new weights are also written in this precision
  // p is stored as two planes of 16 bits (core/split_float.hpp): Args::p has the upper halves, which products read as
  // bf16, and Args::low the lower. fp32 only, without a copy. Results equal the unsplit form bit for bit.
  bool split = false;

  DType p_dtype() const { return split ? DType::bf16 : dtype; }
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

double bytes(const Problem& problem);  // 28 per element, split or not, plus 2 with a copy
double flops(const Problem& problem);

// All contiguous, with `elements` elements, without overlap. A step works in place, as training does; if old_p, old_m
// and old_v are given (all three), it reads those and writes p, m and v, with the same number of bytes. A skipped step
// then writes nothing either.
struct Args {
  TensorView p, m, v;
  ConstTensorView g;
  TensorView copy;                           // no memory without copy_dtype
  const Scalars* scalars = nullptr;          // device memory, aligned to 16 bytes
  const float* clip = nullptr;               // device memory; factor of the gradient; null: 1
  const std::int64_t* non_finite = nullptr;  // device memory; nonzero skips the step (counted by global_norm); null: 0
  ConstTensorView old_p, old_m, old_v;       // no memory: p, m, v hold the old state
  TensorView low;                            // no memory unless `split`
  ConstTensorView old_low;                   // goes with old_p if p is split
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const Args& args);

struct Rung : RungInfo {
  // Why this rung cannot take the problem; nothing if it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  // Preconditions: validate() passed, supports() returned nothing. Work is queued on the stream without waiting or
  // allocating. On the CPU the work is done on return.
  std::function<void(const Problem&, const Args&, device::Stream)> step;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::adamw
