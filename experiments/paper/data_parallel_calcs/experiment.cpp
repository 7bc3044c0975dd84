// data_parallel_calcs: one gated layer under data parallelism; the question is in README.md beside this file, the case
// in data_parallel_calcs/layer_case.cpp.
#include "experiments/paper/layer_case.hpp"

namespace syslab::experiment_data_parallel_calcs {
namespace {

const registry::Experiment kDataParallelCalcs =
    layer_experiment("data_parallel_calcs", parallel::Layout::data_parallel)
        .title("Data parallel on paper")
        .question(
            "One gated feed-forward layer under data parallelism: what does a device compute and send, and up to how "
            "many devices does computing take longer?")
        .problem("2026", "data_parallel_calcs", 3);
SYSLAB_EXPERIMENT(kDataParallelCalcs);

}  // namespace
}  // namespace syslab::experiment_data_parallel_calcs
