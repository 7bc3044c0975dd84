// The rotation as a framework computes it, one kernel per operation; `eager_cuda` runs it on a GPU, and the same code
// is tested on the CPU. Kernels, as PyTorch's autograd launches them for x₁, x₂ = the pairs' elements; c·x₁ − s·x₂ and
// s·x₁ + c·x₂ put together:
//
//   forward    c·x₁, s·x₂, their difference; s·x₁, c·x₂, their sum                                         6
//              stacked, by a copy each (interleaved)          or concatenated at once (halves)           2 / 1
//   backward   c·dy₁, −dy₁, s·(−dy₁); s·dy₂, c·dy₂; two sums; stacked into the pairs again                 9
//
// The tables are fp32, so all arithmetic is: half-precision x is promoted when read, and its gradient is cast back
// product by product (4 more kernels); half-precision y costs one more cast each way.
#pragma once

#include "ops/framework/framework.hpp"
#include "ops/rope/oracle.hpp"

namespace syslab::rope {

std::size_t eager_workspace_bytes(const Problem& problem, Pass pass);
void eager_forward(const Problem& problem, const Args& args, ops::Workspace workspace, device::Stream stream);
void eager_backward(const Problem& problem, const Args& args, ops::Workspace workspace, device::Stream stream);

std::int64_t eager_kernels(const Problem& problem, Pass pass);  // none is extra

// Widens the oracle's bounds for the roundings between operations: in the backward pass, each product is rounded to x's
// dtype before the sum.
void eager_allow(const Problem& problem, Pass pass, const ConstTensorView& x, const ConstTensorView& cos,
                 const ConstTensorView& sin, Expected& expected);

}  // namespace syslab::rope
