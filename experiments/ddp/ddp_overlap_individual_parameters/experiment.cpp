// ddp_overlap_individual_parameters: the question is in README.md beside this file, the case in
// naive_ddp_benchmarking/ddp_case.cpp.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_ddp_overlap_individual_parameters {
namespace {

const registry::Experiment kExperiment =
    ddp_experiment("ddp_overlap_individual_parameters", {"overlap"}, {"small"})
        .title("Communicating during backward")
        .question(
            "With each gradient all-reduced as soon as it is final, while the backward pass still runs: do weights end "
            "as those of one process?")
        .problem("2025", "ddp_overlap_individual_parameters", 5)
        .problem("2026", "ddp_overlap_individual_parameters", 5);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_ddp_overlap_individual_parameters
