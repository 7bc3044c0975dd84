// fsdp: the question is in README.md beside this file, the case in fsdp_case.cpp.
#include "experiments/sharding/fsdp_case.hpp"

namespace syslab::experiment_fsdp {
namespace {

const registry::Experiment kExperiment =
    fsdp_experiment("fsdp", {"small"})
        .title("Full sharding")
        .question(
            "Trained with every weight in parts on several processes, gathered for its use and freed: do weights end "
            "as those of one process on the whole batch?")
        .problem("2026", "fsdp", 15);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_fsdp
