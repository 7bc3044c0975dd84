// One call of a rung on a sample: every tensor between guards, every output poisoned before.
#pragma once

#include <optional>
#include <span>
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

// Asks once more in the same memory: inputs as the sample has them, outputs poisoned. The sample has the call's shapes
// and layouts; its values and its mask may be others.
void call_again(const Rung& rung, const Sample& sample, ForwardCall& call);
// The backward pass alone, on what the forward pass in the same memory wrote last.
void call_backward_again(const Rung& rung, const Sample& sample, BackwardCall& call);

// All questions at once: those of `samples` in tensors of their own, queued in several streams one behind the other
// without waiting in between. On the CPU one after the other.
std::vector<ForwardCall> call_forward_at_once(const Rung& rung, std::span<const Sample* const> samples);
// All forward passes at once, then all backward passes at once.
std::vector<BackwardCall> call_backward_at_once(const Rung& rung, std::span<const Sample* const> samples);

// Contiguous values of what a call wrote.
struct ForwardValues {
  std::vector<double> out, lse;
};
ForwardValues forward_values(const Rung& rung, const Sample& sample);
ForwardValues values_of(const ForwardCall& call);

}  // namespace syslab::attention
