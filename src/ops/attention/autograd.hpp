// Attention as a framework's autograd runs it: the forward pass saves what the backward pass reads. Memory saved
// between the passes and held during them, in matrices of scores (B·H·S·S floats):
//
//   rung            kept for backward     held at most, forward     held at most, backward
//   literal         2  exp, weights       4                         6
//   fused_softmax   1  weights            1                         2
//   naive           0  (L: a float a row) one head's a thread       two of one head a thread
//   flash_tiled     0  (L)                0                         0
//
// naive_cuda_literal and naive_cuda keep and hold the same as literal and fused_softmax; in half precision weights are
// half as large, and scores are held in addition.
//
// `literal` computes the formula as written, one operation at a time over the whole batch, each into its own matrix:
// scores, scaled, shifted, exp, weights. It omits the gradient of the maximum, which is 0 in exact arithmetic; a
// framework that computes it holds two more matrices in the backward pass. Source: CS336 assignment 2, problem
// pytorch_attention.
#pragma once

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// What a forward pass has left for the backward pass, which only reads it.
struct Saved {
  const void* data = nullptr;
  std::size_t bytes = 0;

  Saved() = default;
  Saved(const void* begin, std::size_t count) : data(begin), bytes(count) {}
  Saved(const ops::Workspace& written) : Saved(written.data, written.bytes) {}  // NOLINT: reading it is always fine
};

struct AutogradRung : RungInfo {
  std::function<std::optional<std::string>(const Problem&, Pass)> supports;  // as in Rung
  // Memory that lives from the forward to the backward pass, in addition to Q, K, V, O and L.
  std::function<std::size_t(const Problem&)> saved_bytes;
  // Memory that lives during one pass only.
  std::function<std::size_t(const Problem&, Pass)> workspace_bytes;
  // `saved` has saved_bytes aligned to 16, otherwise Error(usage); forward writes it, backward reads it. `workspace`
  // has workspace_bytes; if smaller, memory is allocated for the call. Otherwise as in Rung.
  std::function<void(const Problem&, const ForwardArgs&, ops::Workspace saved, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, Saved saved, ops::Workspace, device::Stream)> backward;
  std::function<Nanoseconds()> last_call_time;  // as in Rung
};

// From most memory kept to least: those above, then the rungs of attention::ladder() except the reference.
std::span<const AutogradRung> autograd_ladder();
// Error(usage) with the nearest names if there is none.
const AutogradRung& find_autograd_rung(std::string_view name);

// Wraps a rung of attention::ladder() or an external one: it saves only L.
AutogradRung as_autograd(const Rung& rung);
// One rung's forward pass with another's backward pass, which reads its O and L: for the results of dispatch() per
// pass.
AutogradRung as_autograd(const Rung& forward, const Rung& backward);

// Error(usage) unless `saved` has `needed` bytes aligned to 16; the message begins with `rung`.
void require_saved(std::string_view rung, const Saved& saved, std::size_t needed);

// An autograd rung as an ordinary Rung, for laws and callers of the dispatcher: its backward pass first runs the
// forward pass in the given workspace.
Rung as_rung(const AutogradRung& rung);

}  // namespace syslab::attention
