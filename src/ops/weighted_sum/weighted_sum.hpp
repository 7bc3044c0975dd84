// Weighted sum over the last dimension, the smallest operator with a forward and a backward pass: the worked example of
// how an operator joins the house.
//
//   y_i = Σ_d w_d · x_id          dx_id = w_d · g_i,   dw_d = Σ_i x_id · g_i      (g = dL/dy)
//
// Source: CS336 assignment 2, the weighted-sum example.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/direction.hpp"
#include "ops/rung.hpp"

namespace syslab::weighted_sum {

struct Problem {
  std::int64_t rows = 1;     // product of all dimensions of x but the last
  std::int64_t dim = 1;      // D
  DType dtype = DType::f32;  // of x, w, y and their gradients; sums are carried in fp32 (fp64 for fp64)

  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

using ops::Direction;

// A multiplication and an addition are two. Backward: one product an element for dx, a product and a sum for dw.
double forward_flops(const Problem& problem);
double backward_flops(const Problem& problem);
// Each input read once, each output written once.
double forward_bytes(const Problem& problem);
double backward_bytes(const Problem& problem);

// The matrix (rows, D) that a tensor (…, D) of any rank is. A view only: dx written through it has the shape of x
// again. Error(usage) if the leading dimensions do not lie evenly spaced in memory.
ConstTensorView flatten_rows(const ConstTensorView& tensor);
TensorView flatten_rows(const TensorView& tensor);

// Rows may have any stride, elements of a row are adjacent; outputs overlap nothing.
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

// Throws Error(usage) naming the field or tensor, what it holds and what it must hold.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);

struct Rung : ops::RungInfo {
  // Why this rung cannot take the problem in this direction; nothing when it can.
  std::function<std::optional<std::string>(const Problem&, Direction)> supports;
  std::function<std::size_t(const Problem&, Direction)> workspace_bytes;
  // Preconditions: validate() passed, supports() said nothing. On the CPU the work is done on return.
  std::function<void(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream)> backward;
  // For rungs in another process: what the last call took by their own clock. Empty for ours.
  std::function<Nanoseconds()> last_call_time;
};

// From clearest to fastest. Names are unique.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);
// The fastest rung that supports the problem; Error(usage) with every rung's reason if none does.
const Rung& dispatch(const Problem& problem, Direction direction, device::Kind device);

}  // namespace syslab::weighted_sum
