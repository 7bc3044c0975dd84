// Mean cross-entropy of rows of logits, with one correct class per row.
//
//   lse_i = log Σ_c exp z_ic        loss_i = lse_i − z_i,target(i)        loss = mean_i loss_i
//   dz_ic = (exp(z_ic − lse_i) − [c = target(i)]) · scale / rows
//
// `scale` multiplies the gradient of the mean: the fp16 loss scale, divided by the number of accumulated steps. It is
// in device memory, so that a captured step can be replayed with another value.
//
// Invalid targets must not train silently: a target outside [0, classes) makes the row's loss, the mean and the row's
// gradient NaN, and nothing outside the row is read. A NaN or +∞ among the logits does the same; −∞ is a class of
// probability 0.
//
// Source: CS336 assignment 1, cross_entropy (subtract the largest logit, cancel log and exp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "contract/pass.hpp"
#include "core/tensor.hpp"
#include "ops/expect_tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::cross_entropy {

struct Problem {
  std::int64_t rows = 1, classes = 1;
  DType dtype = DType::f32;  // of logits and dlogits

  DType statistics() const { return ops::statistics_dtype(dtype); }  // of losses, lse and scale: fp32, fp64 for fp64
  bool has_class(std::int64_t target) const { return target >= 0 && target < classes; }
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// Pass::both: loss and gradient in one pass that reads the logits once.
double bytes(const Problem& problem, Pass pass);  // each input read once, each output written once
double flops(const Problem& problem, Pass pass);  // an exponential counts as one

// Matrices are (rows, classes), any row stride, elements of a row adjacent. Targets are in the memory of the stream's
// device. Vectors are contiguous. Outputs overlap nothing unless stated; an output that shares another tensor's memory
// also has its strides.
struct ForwardArgs {
  ConstTensorView logits;
  const std::int64_t* targets = nullptr;  // (rows)
  TensorView row_loss, lse;               // (rows)
  TensorView loss;                        // (1)
};

struct BackwardArgs {
  ConstTensorView logits;
  const std::int64_t* targets = nullptr;
  ConstTensorView lse;    // (rows), of the forward pass
  ConstTensorView scale;  // (1); no memory: 1
  TensorView dlogits;     // may be the logits' memory
};

struct ForwardBackwardArgs {
  ConstTensorView logits;
  const std::int64_t* targets = nullptr;
  ConstTensorView scale;     // (1); no memory: 1
  TensorView row_loss, lse;  // (rows)
  TensorView loss;           // (1)
  TensorView dlogits;        // may be the logits' memory
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);
void validate(const Problem& problem, const ForwardBackwardArgs& args);

struct Rung : RungInfo {
  // Why this rung cannot take the problem; nothing if it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  std::function<std::size_t(const Problem&, Pass)> workspace_bytes;
  // Preconditions: validate() passed, supports() returned nothing, the workspace has the required size. Work is queued
  // on the stream without waiting or allocating. On the CPU the work is done on return.
  std::function<void(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream)> backward;
  std::function<void(const Problem&, const ForwardBackwardArgs&, ops::Workspace, device::Stream)> forward_backward;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::cross_entropy
