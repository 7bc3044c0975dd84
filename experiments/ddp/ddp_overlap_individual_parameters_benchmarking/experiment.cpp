// ddp_overlap_individual_parameters_benchmarking: the question is in README.md beside this file, the case in
// naive_ddp_benchmarking/ddp_case.cpp.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_ddp_overlap_individual_parameters_benchmarking {
namespace {

const registry::Experiment kExperiment =
    ddp_experiment("ddp_overlap_individual_parameters_benchmarking", {"none", "naive", "flat_copy", "overlap"},
                   {"xl25", "xl26"})
        .title("What overlap buys")
        .question(
            "How long does a step take when gradients travel under the backward pass, and how much of the "
            "communication "
            "is hidden?")
        .problem("2025", "ddp_overlap_individual_parameters_benchmarking", 1)
        .problem("2026", "ddp_overlap_individual_parameters_benchmarking", 1);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_ddp_overlap_individual_parameters_benchmarking
