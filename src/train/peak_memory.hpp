// How much memory a pass holds at its highest, from arithmetic on sizes alone: what the allocator's account is held
// against.
//
// Two predictions. predicted_peak() follows the passes of this model (model/transformer.cpp) and says what each moment
// that can be the highest holds, by what it is for. framework_peak() is arithmetic, too, and no measurement: what the
// hand-outs' baseline holds as PyTorch runs it in eager mode, an operation a tensor. With P parameters, L blocks that
// keep R each, c = BTd·4, V = BT·vocab·4, S = BHT²·4 bytes:
//
//   forward       4P + max(5c + 4S, 2c + 3·BTf·4, c + 3V)    attention, feed-forward, or logits in their loss
//   forward_kept  4P + L·R + 3c + 3V
//   step          max(12P + L·R + 2V + max(3c + 3V, 3S),     behind the loss: gradients of 2V, or those of scores
//                     16P + 5 · the largest tensor of parameters)
//
// and 2P for the copy of the weights under autocast, until the backward pass is through. Gradients are freed between
// steps. The optimizer is the hand-outs' own AdamW, which goes from tensor to tensor: while one is updated, its new
// moments, α·m, √v and √v + ε come on top of what stays (torch.optim.AdamW with foreach would make √v of all at once,
// 4P, and reach 63.5 GiB where 51.1 to 51.4 are published). Buffers, libraries' workspaces and fragments are not
// counted.
//
// Published for the 2.7B model in fp32 at context 128 and 512, GiB: forward 12.9 and 13.4 (12.8, 13.3 by the formula),
// forward_kept 18.05 and 39.75 (17.96, 39.76), step 51.1 to 51.4 and 65.5 (51.3, 65.4). docs/performance/training.md
// compares PyTorch's measured peaks of five models with ours; the formula is within 1.3 % of each
// (tests/train/peak_memory_test.cpp). Sources: CS336 assignment 2, memory_profiling, with its published attempts; AdamW
// of the hand-outs' basics package.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/params.hpp"

namespace syslab::train {

enum class MemoryPass {
  forward,       // inference: nothing is kept
  forward_kept,  // what a backward pass would need is kept, and no gradients or moments are
  step           // forward, backward and AdamW
};
std::string_view to_string(MemoryPass pass);          // "forward_kept"
MemoryPass parse_memory_pass(std::string_view text);  // Error(usage) with the nearest name

// Bytes at the highest moment, and which moment that is.
struct PeakBytes {
  double parameters = 0, gradients = 0, optimizer = 0;
  double saved = 0, temporaries = 0;
  double others = 0;   // tokens
  std::string moment;  // "attention of the last block, backward"
  double total() const { return parameters + gradients + optimizer + saved + temporaries + others; }
};
// Activations are kept or made again as options.model.recompute says. Workspaces are those of the rungs that would run;
// of rungs that this build is without, those that hold matrices of scores are counted by hand and others as none.
PeakBytes predicted_peak(const WorkloadOptions& options, MemoryPass pass);

// The most that blocks hold for the backward pass while that goes through them: all of one segment, and of those before
// it the stream where each begins (model/recompute.hpp).
double most_kept_by_blocks(const WorkloadOptions& options);

// What one block keeps for the backward pass, by tensor, in the order in which they are made.
struct SavedTensor {
  std::string name;  // "attn.qkv"
  double bytes = 0;
};
std::vector<SavedTensor> saved_by_block(const WorkloadOptions& options);

// The same for the hand-outs' baseline: R = 10·BTd·4 + 5·BTf·4 + 2·BHT²·4 and small tensors in fp32;
// 34·BTd + 10·BTf + 6·BHT² under autocast.
double framework_block_bytes(const WorkloadOptions& options);
double framework_peak(const WorkloadOptions& options, MemoryPass pass);  // the formula above

}  // namespace syslab::train
