// The normalisation as a framework computes it, one kernel per operation; `eager_cuda` runs it on a GPU, and the same
// code is tested on the CPU. Kernels, as PyTorch's autograd launches them for w · (x · rsqrt(mean(x²) + eps)):
//
//   forward    h = x + delta (where asked)
//              h², mean, + eps, rsqrt, · h, w ·                                                           6
//   backward   dw: dy ∘ n, down the columns      dn = dy ∘ w                                              3
//              n = h · rstd: dh₁ = dn · rstd; dn ∘ h, along the row                                       3
//              rsqrt: rstd³, −½ ·, ·              mean: / dim, spread over the row                        4
//              h²: h¹ (a copy), 2 ·, ·            dh₁ + dh₂                                               4
//              + the gradient that arrives, dw + what was there (where asked)
//
// plus a cast for each of x and y in half precision: autocast keeps the operator in fp32. Extra, backward: n, which a
// framework has saved (and h in fp32).
#pragma once

#include "ops/framework/framework.hpp"
#include "ops/rms_norm/oracle.hpp"

namespace syslab::rms_norm {

std::size_t eager_workspace_bytes(const Problem& problem, Pass pass);
void eager_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream);
void eager_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream);

// Number of kernels that a framework launches, without the extra ones.
std::int64_t eager_kernels(const Problem& problem, Pass pass, bool with_dh = false, bool accumulate = false);

// Widens the oracle's bounds for the roundings between operations: with dh in half precision, the norm's part
// is rounded before dh is added.
void eager_allow(const Problem& problem, const ConstTensorView& dh, BackwardOracle& expected);

}  // namespace syslab::rms_norm
