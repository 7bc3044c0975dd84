// minimal_ddp_flat_benchmarking: the question is in README.md beside this file, the case in
// naive_ddp_benchmarking/ddp_case.cpp.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_minimal_ddp_flat_benchmarking {
namespace {

const registry::Experiment kExperiment =
    ddp_experiment("minimal_ddp_flat_benchmarking", {"none", "naive", "flat_copy", "flat_view"}, {"xl25", "xl26"})
        .title("One message for all gradients")
        .question(
            "What does one all-reduce of all gradients change against one a gradient, and how much of that do the "
            "copies "
            "into one buffer and back take?")
        .problem("2025", "minimal_ddp_flat_benchmarking", 2)
        .problem("2026", "minimal_ddp_flat_benchmarking", 2);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_minimal_ddp_flat_benchmarking
