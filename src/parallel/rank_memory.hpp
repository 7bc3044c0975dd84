// What one rank of a training step holds at its highest, from arithmetic on sizes alone, however its state is divided:
// what a plan promises before anything runs.
//
//   options.batch /= ranks;                                                         // rows of a rank
//   data_parallel_memory(options, ranks, Sharding::zero2, {.bucket_mb = {25}}).total();
//   fsdp_memory(options, ranks, fsdp_step_options(Granularity::block)).total();
//
// State is that of parallel/state_memory.hpp with padding and slots, laid out as it will be; activations and all else
// are those of train/peak_memory.hpp. Of the rank that holds most. Memory of communicators is not counted.
#pragma once

#include <cstdint>

#include "parallel/fsdp/step.hpp"
#include "parallel/state_memory.hpp"
#include "parallel/strategy.hpp"
#include "train/workload.hpp"

namespace syslab::parallel {

// In bytes.
struct RankMemory {
  double weights = 0, copy = 0, gradients = 0, moments = 0;
  double slots = 0;        // zero2, and zero1 where they are rounded: gradients on their way; zero3: whole weights, too
  double wire = 0;         // up to `optimizer`: gradients as they travel where that is not as they lie (WireBuffer)
  double activations = 0;  // with workspaces, tokens and tables

  double state() const { return weights + gradients + moments; }
  double total() const { return state() + copy + slots + wire + activations; }
};

// Up to zero2, of a step in train::Mode::train. Error(usage) for zero3 and for fewer than one rank.
RankMemory data_parallel_memory(const train::WorkloadOptions& of_rank, int ranks, Sharding sharding,
                                const SyncOptions& sync);
RankMemory fsdp_memory(const train::WorkloadOptions& of_rank, int ranks, const FsdpStepOptions& options);

}  // namespace syslab::parallel
