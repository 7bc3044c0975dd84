// The rungs of the cross-entropy, for this folder alone.
#pragma once

#include "ops/cross_entropy/cross_entropy.hpp"

namespace syslab::cross_entropy {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

std::function<std::optional<std::string>(const Problem&)> supports_dtypes(const ops::RungInfo& info);

// Of a rung whose passes are independent: the forward pass and then the backward pass on what it made.
inline void one_after_the_other(const Rung& rung, const Problem& problem, const ForwardBackwardArgs& args,
                                ops::Workspace workspace, device::Stream stream) {
  rung.forward(problem, {args.logits, args.targets, args.row_loss, args.lse, args.loss}, workspace, stream);
  rung.backward(problem, {args.logits, args.targets, args.lse, args.scale, args.dlogits}, workspace, stream);
}

}  // namespace syslab::cross_entropy
