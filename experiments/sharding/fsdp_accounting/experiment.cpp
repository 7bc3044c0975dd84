// fsdp_accounting: the question is in README.md beside this file, the case in fsdp/fsdp_case.cpp.
#include "experiments/sharding/fsdp_case.hpp"

namespace syslab::experiment_fsdp_accounting {
namespace {

const registry::Experiment kExperiment =
    fsdp_experiment("fsdp_accounting", {"xl26"})
        .title("What full sharding saves and what it waits for")
        .question(
            "How much memory does full sharding save beside a sharded optimizer, and is each layer's weight there when "
            "it is needed?")
        .problem("2026", "fsdp_accounting", 5);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_fsdp_accounting
