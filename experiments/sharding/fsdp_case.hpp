// A case that is a training step with all of its state divided among the ranks, certified and checked on every rank and
// timed with all in step: what the experiments on full sharding have in common.
#pragma once

#include <string>
#include <vector>

#include "model/recompute.hpp"
#include "parallel/fsdp/parts.hpp"
#include "registry/registry.hpp"
#include "train/ladder.hpp"

namespace syslab::worker {
class CaseContext;
}

namespace syslab {

// Options of a fully sharded step, in addition to the model's axes.
struct FsdpCase {
  const train::Rung& rung;
  parallel::Granularity granularity = parallel::Granularity::block;
  model::Recompute recompute = {};
};

// Runs a case on this rank, and says what it found as add_fsdp_metrics() declares.
void run_fsdp_case(worker::CaseContext& context, const FsdpCase& how);
// What the rank that holds most is forecast to hold, in bytes. "world_size" is in the parameters.
double fsdp_case_memory(const Params& params, const FsdpCase& how);
void add_fsdp_metrics(registry::Builder& experiment);

// Axes: those of the model, `batch` being the rows of all ranks; `model`, by default these; `granularity`, what is
// gathered together. Presets, metrics and the body are there; a title, a question and problems are to be added.
registry::Builder fsdp_experiment(std::string id, const std::vector<std::string>& models);

// Somebody's Python class may be checked in its place: by laws, on ranks of its own (--mine).
void take_fully_sharded_classes(registry::Builder& experiment);

// Somebody's FSDP may be timed as granularity=layer (experiments/ddp/timed_class.hpp).
void time_fully_sharded_classes(registry::Builder& experiment);

}  // namespace syslab
