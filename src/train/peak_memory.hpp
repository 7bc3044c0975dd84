// How much memory a pass holds at its highest, from arithmetic on sizes alone: what the allocator's account is held
// against.
//
// Two predictions. predicted_peak() follows the passes of this model (model/transformer.cpp) and says what each moment
// that can be the highest holds, by what it is for. framework_peak() is the formula for the baseline of the hand-outs
// as PyTorch runs it, an operation a tensor, with gradients that are freed between steps; it was validated against
// published measurements (18.05 GiB for 17.96, 65.52 for 65.14 of the 2.7B model in fp32).
// Source: CS336 assignment 2, memory_profiling.
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
double framework_peak(const WorkloadOptions& options, MemoryPass pass);

}  // namespace syslab::train
