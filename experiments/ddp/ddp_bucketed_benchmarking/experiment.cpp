// ddp_bucketed_benchmarking: the question is in README.md beside this file, the case in
// naive_ddp_benchmarking/ddp_case.cpp.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_ddp_bucketed_benchmarking {
namespace {

const registry::Experiment kExperiment =
    ddp_experiment("ddp_bucketed_benchmarking", {"none", "overlap", "bucketed", "planned"}, {"xl25"},
                   {1, 10, 100, 1000})
        .title("Which bucket size")
        .question(
            "How does the time of a step depend on the size of buckets, and what does a plan computed from measured "
            "times choose?")
        .problem("2025", "ddp_bucketed_benchmarking", 3);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_ddp_bucketed_benchmarking
