// naive_ddp: the question is in README.md beside this file, the case in naive_ddp_benchmarking/ddp_case.cpp.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_naive_ddp {
namespace {

const registry::Experiment kExperiment =
    ddp_experiment("naive_ddp", {"naive"}, {"small"})
        .title("Data parallel, gradient by gradient")
        .question(
            "Trained on several processes, with every gradient all-reduced after the backward pass: do weights end as "
            "those of one process on the whole batch?")
        .problem("2025", "naive_ddp", 5)
        .problem("2026", "naive_ddp", 5);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_naive_ddp
