// The normalisation as a framework runs it, an operation a kernel; `eager_cuda` is this on a GPU, and on the CPU it is
// proved. Kernels, as PyTorch's autograd launches them for w · (x · rsqrt(mean(x²) + eps)):
//
//   forward    h = x + delta (where asked)
//              h², mean, + eps, rsqrt, · h, w ·                                                           6
//   backward   dw: dy ∘ n, down the columns      dn = dy ∘ w                                              3
//              n = h · rstd: dh₁ = dn · rstd; dn ∘ h, along the row                                       3
//              rsqrt: rstd³, −½ ·, ·              mean: / dim, spread over the row                        4
//              h²: h¹ (a copy), 2 ·, ·            dh₁ + dh₂                                               4
//              + the gradient that arrives, dw + what was there (where asked)
//
// and a cast for each of x and y that is half precision: autocast keeps the operator in fp32. Extra, backward: n, which
// a framework has kept (and h in fp32).
#pragma once

#include "ops/framework/framework.hpp"
#include "ops/rms_norm/oracle.hpp"

namespace syslab::rms_norm {

std::size_t eager_workspace_bytes(const Problem& problem, Direction direction);
void eager_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream);
void eager_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream);

// What is launched for a framework, without what is extra.
std::int64_t eager_kernels(const Problem& problem, Direction direction, bool with_dh = false, bool accumulate = false);

// Widens the oracle's bounds by what roundings between operations may add: with dh in half precision, the norm's part
// is rounded before dh is added.
void eager_allow(const Problem& problem, const ConstTensorView& dh, BackwardOracle& expected);

}  // namespace syslab::rms_norm
