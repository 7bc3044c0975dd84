// What the autograd function `naive_cuda` computes, here on the CPU, so that its bound is held where there is no GPU.
#pragma once

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Weights and dS are kept in the tensors' dtype, scores and dP in fp32; the backward pass makes δ = Σ P·dP and dS from
// the weights as they are kept. Forward as `naive`. Takes no notice of a workspace.
Rung kept_weights_rung();

}  // namespace syslab::attention
