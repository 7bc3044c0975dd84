// What full sharding as the hand-out has it leaves on a rank of a real model: every weight of a linear layer or an
// embedding is cut along its first dimension, in equal parts after padding; norms stay whole on every rank.
//
//   fsdp_state(model::find_model("xl26"), 2, kFp32State).rank_bytes;       // 25.38 GiB
//
// Source: hand-out 2026, fsdp and fsdp_accounting (a).
#pragma once

#include <cstdint>

#include "model/config.hpp"
#include "parallel/state_memory.hpp"

namespace syslab::parallel {

struct FsdpState {
  std::int64_t sharded_tensors = 0, replicated_tensors = 0;
  std::int64_t sharded_parameters = 0, replicated_parameters = 0;
  std::int64_t padding = 0;             // elements added to all shards of all ranks together
  double rank_bytes = 0;                // weights, gradients, master copy and moments of a rank, padding and all
  std::int64_t largest_parameters = 0;  // of the largest weight that is gathered
};
// Error(usage) for a model that cannot be and for fewer than one rank.
FsdpState fsdp_state(const model::ModelConfig& config, std::int64_t ranks, const StateWidths& widths);

}  // namespace syslab::parallel
