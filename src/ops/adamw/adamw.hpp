// AdamW over one contiguous arena of parameters: a step in one pass.
//
//   g ← g · grad_scale · clip
//   m ← β₁ m + (1 − β₁) g          v ← β₂ v + (1 − β₂) g²
//   p ← p − lr·wd · p                                        here with DecayOrder::before,
//   p ← p − step · m / (√v · root_factor + eps)
//   p ← p − lr·wd · p                                        here with DecayOrder::after
//
// The hand-out's eps (uncorrected) is added to √v as it is: step = lr·√(1−β₂ᵗ)/(1−β₁ᵗ), root_factor = 1. A framework's
// (corrected) is added after the correction of √v: step = lr/(1−β₁ᵗ), root_factor = 1/√(1−β₂ᵗ).
//
// What changes from step to step lies in device memory (Scalars, the clip factor), so that a captured step can be
// replayed with another step's numbers.
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

// The numbers of one step as kernels of one precision read them.
template <typename T>
struct StepNumbers {
  T beta1, rest1;               // β₁ and 1 − β₁
  T beta2, rest2;               // β₂ and 1 − β₂
  T step, root_factor, eps;     // see above
  T decay_before, decay_after;  // lr·wd where it applies, else 0
  T grad_scale;                 // 1 / loss scale
};

// Plain bytes, copied to device memory before each step. Every number is computed in double and rounded once.
struct Scalars {
  StepNumbers<double> in_f64;
  StepNumbers<float> in_f32;
  std::int32_t skip;  // not 0: the step leaves everything untouched
  std::int32_t unused;
};

// Of step t = 1, 2, …. Error(usage) for t < 1, betas outside [0, 1), eps or lr that is no number ≥ 0.
Scalars scalars_of(const Options& options, std::int64_t t, double grad_scale = 1, bool skip = false);

struct Problem {
  std::int64_t elements = 1;
  DType dtype = DType::f32;         // of p, m, v and g: fp32, fp64 for the reference
  std::optional<DType> copy_dtype;  // bf16 or fp16: the new weights are also written in this precision
  // p in two planes of 16 bits (core/split_float.hpp): Args::p are the upper halves, which products read as bf16, and
  // Args::low the lower. Of fp32, with no copy. The numbers are those of the whole form, to the bit.
  bool split = false;

  DType p_dtype() const { return split ? DType::bf16 : dtype; }
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

double bytes(const Problem& problem);  // 28 an element, split or whole, and 2 with a copy
double flops(const Problem& problem);

// All contiguous, of `elements` elements, overlapping nothing. A step works in place, as training does; given old_p,
// old_m and old_v (all three), it reads those and writes p, m and v, the same bytes. A skipped step writes nothing then
// either.
struct Args {
  TensorView p, m, v;
  ConstTensorView g;
  TensorView copy;                           // no memory without copy_dtype
  const Scalars* scalars = nullptr;          // device memory, aligned to 16 bytes
  const float* clip = nullptr;               // device memory; the gradient is multiplied with it; null: 1
  const std::int64_t* non_finite = nullptr;  // device memory; not 0 skips the step (global_norm counts); null: 0
  ConstTensorView old_p, old_m, old_v;       // no memory: p, m, v hold the old state
  TensorView low;                            // no memory unless `split`
  ConstTensorView old_low;                   // goes with old_p where p is split
};

// Throws Error(usage) naming the field or tensor, what it holds and what it must hold.
void validate(const Problem& problem);
void validate(const Problem& problem, const Args& args);

struct Rung : ops::RungInfo {
  // Why this rung cannot take the problem; nothing when it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  // Preconditions: validate() passed, supports() said nothing. Work is queued on the stream, nothing waits and nothing
  // is allocated. On the CPU the work is done on return.
  std::function<void(const Problem&, const Args&, device::Stream)> step;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::adamw
