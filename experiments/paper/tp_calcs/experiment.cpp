// tp_calcs: one gated layer under tensor parallelism; the question is in README.md beside this file, the case in
// data_parallel_calcs/layer_case.cpp.
#include "experiments/paper/layer_case.hpp"

namespace syslab::experiment_tp_calcs {
namespace {

const registry::Experiment kTpCalcs =
    layer_experiment("tp_calcs", parallel::Layout::tensor_parallel)
        .title("Tensor parallel on paper")
        .question(
            "The same gated layer split along its hidden dimension: what is backward, what does a device compute and "
            "send, and up to how many devices does computing take longer?")
        .problem("2026", "tp_calcs", 4);
SYSLAB_EXPERIMENT(kTpCalcs);

}  // namespace
}  // namespace syslab::experiment_tp_calcs
