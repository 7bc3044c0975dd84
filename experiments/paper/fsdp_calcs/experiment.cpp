// fsdp_calcs: one gated layer under full sharding; the question is in README.md beside this file, the case in
// data_parallel_calcs/layer_case.cpp.
#include "experiments/paper/layer_case.hpp"

namespace syslab::experiment_fsdp_calcs {
namespace {

const registry::Experiment kFsdpCalcs =
    layer_experiment("fsdp_calcs", parallel::Layout::fsdp)
        .title("Full sharding on paper")
        .question(
            "The same gated layer with its weights sharded: what does a device compute and send, and up to how many "
            "devices does computing take longer?")
        .problem("2026", "fsdp_calcs", 3);
SYSLAB_EXPERIMENT(kFsdpCalcs);

}  // namespace
}  // namespace syslab::experiment_fsdp_calcs
