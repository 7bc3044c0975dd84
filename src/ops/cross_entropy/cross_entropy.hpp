// Cross-entropy of rows of logits against one right class a row, averaged.
//
//   lse_i = log Σ_c exp z_ic        loss_i = lse_i − z_i,target(i)        loss = mean_i loss_i
//   dz_ic = (exp(z_ic − lse_i) − [c = target(i)]) · scale / rows
//
// `scale` is what the gradient of the mean is multiplied with: the loss scale of fp16, one over the steps that are
// accumulated. It lies in device memory, so that a captured step can be replayed with another one.
//
// What no target can mean must not train silently: a target outside [0, classes) makes the row's loss, the mean and the
// row's gradient NaN, and nothing outside the row is read. So do a NaN and +∞ among the logits; −∞ is a class of
// probability 0.
//
// Source: CS336 assignment 1, cross_entropy (subtract the largest logit, cancel log and exp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

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

// `both`: loss and gradient in one pass that reads the logits once.
enum class Pass { forward, backward, both };
std::string_view to_string(Pass pass);

double bytes(const Problem& problem, Pass pass);  // each input read once, each output written once
double flops(const Problem& problem, Pass pass);  // an exponential counts as one

// Matrices are (rows, classes), rows any stride apart, elements of a row adjacent. Targets lie in the memory of the
// stream's device. Vectors are contiguous. Outputs overlap nothing but what is said; what may be another tensor's
// memory has then its strides too.
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

// Throws Error(usage) naming the field or tensor, what it holds and what it must hold.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);
void validate(const Problem& problem, const ForwardBackwardArgs& args);

struct Rung : ops::RungInfo {
  // Why this rung cannot take the problem; nothing when it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  std::function<std::size_t(const Problem&, Pass)> workspace_bytes;
  // Preconditions: validate() passed, supports() said nothing, the workspace is as large as asked for. Work is queued
  // on the stream, nothing waits and nothing is allocated. On the CPU the work is done on return.
  std::function<void(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream)> backward;
  std::function<void(const Problem&, const ForwardBackwardArgs&, ops::Workspace, device::Stream)> forward_backward;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::cross_entropy
