// ddp_overlap_bucketed: the question is in README.md beside this file, the case in naive_ddp_benchmarking/ddp_case.cpp.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_ddp_overlap_bucketed {
namespace {

const registry::Experiment kExperiment = ddp_experiment("ddp_overlap_bucketed", {"bucketed"}, {"small"}, {1})
                                             .title("Communicating in buckets")
                                             .question(
                                                 "With gradients gathered into buckets of a limited size, in reverse "
                                                 "order of registration, and each reduced "
                                                 "as soon as it is full: do weights end as those of one process?")
                                             .problem("2025", "ddp_overlap_bucketed", 8);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab::experiment_ddp_overlap_bucketed
