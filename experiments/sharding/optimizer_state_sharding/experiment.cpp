// optimizer_state_sharding: the question is in README.md beside this file, the case in sharding_case.cpp.
#include "experiments/sharding/sharding_case.hpp"

namespace syslab::experiment_optimizer_state_sharding {
namespace {

const registry::Experiment kExperiment =
    sharding_experiment("optimizer_state_sharding", {"optimizer", "zero1", "zero2"}, {"small"})
        .title("Sharding the optimizer's state")
        .question(
            "With the optimizer's state of each parameter on one rank alone, which updates it and sends it to the "
            "others: do weights end as those of one process?")
        .problem("2025", "optimizer_state_sharding", 15)
        .problem("2026", "optimizer_state_sharding", 15);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_optimizer_state_sharding
