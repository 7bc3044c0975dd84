// fsdp_tp_calcs: one gated layer under full sharding and tensor parallelism; the question is in README.md beside this
// file, the case in data_parallel_calcs/layer_case.cpp.
#include "experiments/paper/layer_case.hpp"

namespace syslab::experiment_fsdp_tp_calcs {
namespace {

const registry::Experiment kFsdpTpCalcs =
    layer_experiment("fsdp_tp_calcs", parallel::Layout::fsdp_tensor)
        .title("Both together on paper")
        .question(
            "The same gated layer, sharded over one axis of devices and split over the other: how far does it go when "
            "the two axes communicate at once, and when one waits for the other?")
        .problem("2026", "fsdp_tp_calcs", 6);
SYSLAB_EXPERIMENT(kFsdpTpCalcs);

}  // namespace
}  // namespace syslab::experiment_fsdp_tp_calcs
