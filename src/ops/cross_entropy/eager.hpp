// The loss as a framework computes it, one kernel per operation; `eager_cuda` runs it on a GPU, and the same code is
// tested on the CPU. Kernels, as PyTorch's autograd launches them for s = z − max z; mean(−gather(s − log(sum(exp(s))),
// target)):
//
//   forward    max, s, exp, sum, log, s − log, gather, −, mean                                        9
//   backward   mean: scale / rows     −     gather: zeros, scatter                                    4
//              s − log: −, along the row     log: / sum     exp: · exp     both ways into s: +        5
//              z − max: −, along the row     max: zeros, scatter     both ways into z: +              5
//
// In half precision, as autocast has it: max and s in the logits' dtype, a cast before exp, the rest in fp32; the
// gradients of s, max and z in the logits' dtype again, for which two are cast.
//
// Extra: lse, for which only our interface asks; in a backward pass of its own, max, s, exp and sum, which a framework
// has kept. The two passes in one call keep them.
#pragma once

#include "ops/cross_entropy/oracle.hpp"
#include "ops/framework/framework.hpp"

namespace syslab::cross_entropy {

std::size_t eager_workspace_bytes(const Problem& problem, Pass pass);
void eager_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream);
void eager_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream);
void eager_forward_backward(const Problem& problem, const ForwardBackwardArgs& args, ops::Workspace workspace,
                            device::Stream stream);

// Number of kernels that a framework launches, without the extra ones.
std::int64_t eager_kernels(const Problem& problem, Pass pass);

// Widens the oracle's bounds for the roundings between operations (eager_bound.cpp). Host memory.
void eager_allow(const Problem& problem, const ConstTensorView& logits, std::span<const std::int64_t> targets,
                 double scale, Oracle& expected);

}  // namespace syslab::cross_entropy
