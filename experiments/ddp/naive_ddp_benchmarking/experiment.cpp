// naive_ddp_benchmarking: the question is in README.md beside this file, the case in
// naive_ddp_benchmarking/ddp_case.cpp.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_naive_ddp_benchmarking {
namespace {

const registry::Experiment kExperiment =
    ddp_experiment("naive_ddp_benchmarking", {"none", "naive"}, {"xl25", "xl26"})
        .title("What naive data parallel costs")
        .question("How much of a training step goes into communicating gradients one by one behind the backward pass?")
        .problem("2025", "naive_ddp_benchmarking", 3)
        .problem("2026", "naive_ddp_benchmarking", 3);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_naive_ddp_benchmarking
