// optimizer_state_sharding_accounting: the question is in README.md beside this file, the case in
// optimizer_state_sharding/sharding_case.cpp.
#include "experiments/sharding/sharding_case.hpp"

namespace syslab::experiment_optimizer_state_sharding_accounting {
namespace {

const registry::Experiment kExperiment =
    sharding_experiment("optimizer_state_sharding_accounting", {"none", "optimizer", "zero1", "zero2"},
                        {"xl25", "xl26"})
        .title("What sharding the state saves")
        .question(
            "How much memory does a rank hold after initialisation, before and after the update, with the optimizer's "
            "state divided and without; what does a step cost; and how does ZeRO's first stage differ?")
        .problem("2025", "optimizer_state_sharding_accounting", 5)
        .problem("2026", "optimizer_state_sharding_accounting", 5);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_optimizer_state_sharding_accounting
