// One call of a rung on a sample: every tensor between guards, every output poisoned before.
#pragma once

#include <optional>
#include <vector>

#include "property_tests/attention/sample.hpp"

namespace syslab::attention {

// The tensors of a call live here after it.
struct ForwardCall {
  check::GuardedTensor q, k, v, out, lse;
  std::optional<check::GuardedTensor> workspace;
};

struct BackwardCall {
  ForwardCall forward;
  check::GuardedTensor dout, dq, dk, dv;
  std::optional<check::GuardedTensor> workspace;
};

// `lend`: pass a workspace of exactly the size that the rung asked for, instead of letting it take its own.
ForwardCall call_forward(const Rung& rung, const Sample& sample, bool lend = false);
// The rung's forward pass first, then its backward pass on what that wrote, as autograd would.
BackwardCall call_backward(const Rung& rung, const Sample& sample, bool lend = false);

// Contiguous values of what a call wrote.
struct ForwardValues {
  std::vector<double> out, lse;
};
ForwardValues forward_values(const Rung& rung, const Sample& sample);

}  // namespace syslab::attention
