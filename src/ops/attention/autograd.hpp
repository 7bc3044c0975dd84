// Attention as a framework's autograd runs it: the forward pass keeps what the backward pass reads. What is kept, and
// what both passes hold while they run, is counted in matrices of scores: B·H·S·S floats.
//
//   rung            kept for backward     held at most, forward     held at most, backward
//   literal         2  exp, weights       4                         6
//   fused_softmax   1  weights            1                         2
//   naive           0  (L: a float a row) one head's a thread       two of one head a thread
//   flash_tiled     0  (L)                0                         0
//
// naive_cuda_literal and naive_cuda keep and hold what literal and fused_softmax do; in half precision weights are half
// as large, and scores lie beside them.
//
// `literal` computes what is written, an operation at a time over the whole batch, each into a matrix of its own:
// scores, scaled, shifted, exp, weights. The gradient of the maximum is left out: it adds 0 in exact arithmetic, and a
// framework that computes it holds two more matrices in the backward pass.
// Source: CS336 assignment 2, problem pytorch_attention.
#pragma once

#include "ops/attention/attention.hpp"

namespace syslab::attention {

struct AutogradRung : ops::RungInfo {
  std::function<std::optional<std::string>(const Problem&, Direction)> supports;  // as in Rung
  // What lives from the forward pass to the backward pass, beside Q, K, V, O and L.
  std::function<std::size_t(const Problem&)> saved_bytes;
  // What lives during one pass only.
  std::function<std::size_t(const Problem&, Direction)> workspace_bytes;
  // `saved` has saved_bytes at a multiple of 16, Error(usage) if not; forward writes it, backward reads it.
  // `workspace` has workspace_bytes; where it has less, memory is taken for the call. Otherwise as in Rung.
  std::function<void(const Problem&, const ForwardArgs&, ops::Workspace saved, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, ops::Workspace saved, ops::Workspace, device::Stream)>
      backward;
  std::function<Nanoseconds()> last_call_time;  // as in Rung
};

// From the most that is kept to the least: those above, then the other ladder's but for the reference.
std::span<const AutogradRung> autograd_ladder();
// Error(usage) with the nearest names if there is none.
const AutogradRung& find_autograd_rung(std::string_view name);

// A rung of the other ladder, or of somebody else: it keeps L alone, and is an autograd function as it is.
AutogradRung as_autograd(const Rung& rung);
// One rung's forward pass and another's backward pass, which reads its O and L: what dispatch() finds for each pass.
AutogradRung as_autograd(const Rung& forward, const Rung& backward);

// Error(usage) unless `saved` has `needed` bytes at a multiple of 16; `rung` begins the message.
void require_saved(std::string_view rung, const ops::Workspace& saved, std::size_t needed);

// The same as a rung of the other ladder, for laws and the dispatcher's callers: its backward pass runs the forward
// pass first, in the workspace that it is lent.
Rung as_rung(const AutogradRung& rung);

}  // namespace syslab::attention
