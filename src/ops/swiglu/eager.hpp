// The gate as a framework computes it, an operation a kernel, every result rounded to the tensors' dtype; `eager_cuda`
// is this on a GPU, and on the CPU it is proved. Kernels, as PyTorch's autograd launches them for (gate ·
// sigmoid(gate)) · up:
//
//   forward    σ, gate · σ, · up                                              3
//   backward   dout · up, dout · silu                                         2
//              silu: ds · σ, ds · gate; σ's gradient; their sum               4
//
// Extra, backward: σ and silu, which a framework has saved; `out` if requested again.
#pragma once

#include "ops/framework/framework.hpp"
#include "ops/swiglu/oracle.hpp"

namespace syslab::swiglu {

std::size_t eager_workspace_bytes(const Problem& problem, Pass pass);
void eager_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream);
void eager_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream);

// Number of kernels that a framework launches, without the extra ones.
std::int64_t eager_kernels(Pass pass);

// Widens the oracle's bounds for rounding every result to the tensors' dtype (eager_bound.cpp).
void eager_allow(const Problem& problem, const ConstTensorView& gate, const ConstTensorView& up, Expected& out);
void eager_allow(const Problem& problem, const ConstTensorView& gate, const ConstTensorView& up,
                 const ConstTensorView& dout, BackwardOracle& expected);

}  // namespace syslab::swiglu
