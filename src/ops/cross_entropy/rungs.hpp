// The rungs of the cross-entropy; private to this folder.
#pragma once

#include "ops/cross_entropy/cross_entropy.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::cross_entropy {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// supports() of the rungs here: the dtypes that they list.
inline auto supports_dtypes(const RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

// For a rung with independent passes: runs the forward pass, then the backward pass on its results.
inline void one_after_the_other(const Rung& rung, const Problem& problem, const ForwardBackwardArgs& args,
                                ops::Workspace workspace, device::Stream stream) {
  rung.forward(problem, {args.logits, args.targets, args.row_loss, args.lse, args.loss}, workspace, stream);
  rung.backward(problem, {args.logits, args.targets, args.lse, args.scale, args.dlogits}, workspace, stream);
}

}  // namespace syslab::cross_entropy
