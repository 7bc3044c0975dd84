// The experiments on data parallelism that differ only in texts, strategies and models; their case is in ddp_case.cpp,
// the questions are in the README.md of their folders.
#include "experiments/ddp/ddp_case.hpp"

namespace syslab::experiment_ddp {
namespace {

using data_parallel::Strategy;

registry::Builder with_classes(registry::Builder made, Strategy strategy, std::string timed_by) {
  take_classes(made, strategy, std::move(timed_by));
  return made;
}

registry::Builder with_timed_classes(registry::Builder made, Strategy strategy, const std::string& word,
                                     bool with_laws = false) {
  time_classes(made, strategy, word, with_laws);
  return made;
}

registry::Experiment describe_naive_ddp() {
  return with_classes(ddp_experiment("naive_ddp", {"naive"}, {"small"}), Strategy::naive, "naive_ddp_benchmarking")
      .title("Naive DDP")
      .question(
          "Trained on several processes, with every gradient all-reduced after the backward pass: do weights end as "
          "those of one process on the whole batch?")
      .problem("2025", "naive_ddp", 5)
      .problem("2026", "naive_ddp", 5);
}
SYSLAB_EXPERIMENT(naive_ddp, describe_naive_ddp);

registry::Experiment describe_naive_ddp_benchmarking() {
  return with_timed_classes(ddp_experiment("naive_ddp_benchmarking", {"none", "naive"}, {"xl25", "xl26"}),
                            Strategy::naive, "naive")
      .title("Naive DDP benchmark")
      .question("How much of a training step goes into communicating gradients one by one behind the backward pass?")
      .problem("2025", "naive_ddp_benchmarking", 3)
      .problem("2026", "naive_ddp_benchmarking", 3);
}
SYSLAB_EXPERIMENT(naive_ddp_benchmarking, describe_naive_ddp_benchmarking);

registry::Experiment describe_minimal_ddp_flat_benchmarking() {
  return with_timed_classes(ddp_experiment("minimal_ddp_flat_benchmarking", {"none", "naive", "flat_copy", "flat_view"},
                                           {"xl25", "xl26"}),
                            Strategy::flat, "flat_copy", true)
      .title("DDP with one flat all-reduce")
      .question(
          "What does one all-reduce of all gradients change against one a gradient, and how much of that do the "
          "copies into one buffer and back take?")
      .problem("2025", "minimal_ddp_flat_benchmarking", 2)
      .problem("2026", "minimal_ddp_flat_benchmarking", 2);
}
SYSLAB_EXPERIMENT(minimal_ddp_flat_benchmarking, describe_minimal_ddp_flat_benchmarking);

registry::Experiment describe_ddp_overlap_individual_parameters() {
  return with_classes(ddp_experiment("ddp_overlap_individual_parameters", {"overlap"}, {"small"}), Strategy::individual,
                      "ddp_overlap_individual_parameters_benchmarking")
      .title("DDP with overlap of individual parameters")
      .question(
          "With each gradient all-reduced as soon as it is final, while the backward pass still runs: do weights end "
          "as those of one process?")
      .problem("2025", "ddp_overlap_individual_parameters", 5)
      .problem("2026", "ddp_overlap_individual_parameters", 5);
}
SYSLAB_EXPERIMENT(ddp_overlap_individual_parameters, describe_ddp_overlap_individual_parameters);

registry::Experiment describe_ddp_overlap_individual_parameters_benchmarking() {
  return with_timed_classes(ddp_experiment("ddp_overlap_individual_parameters_benchmarking",
                                           {"none", "naive", "flat_copy", "overlap"}, {"xl25", "xl26"}),
                            Strategy::individual, "overlap")
      .title("DDP with overlap: benchmark")
      .question(
          "How long does a step take when gradients travel under the backward pass, and how much of the "
          "communication is hidden?")
      .problem("2025", "ddp_overlap_individual_parameters_benchmarking", 1)
      .problem("2026", "ddp_overlap_individual_parameters_benchmarking", 1);
}
SYSLAB_EXPERIMENT(ddp_overlap_individual_parameters_benchmarking,
                  describe_ddp_overlap_individual_parameters_benchmarking);

registry::Experiment describe_ddp_overlap_bucketed() {
  return with_classes(ddp_experiment("ddp_overlap_bucketed", {"bucketed"}, {"small"}, {1}), Strategy::bucketed,
                      "ddp_bucketed_benchmarking")
      .title("DDP with bucketed overlap")
      .question(
          "With gradients gathered into buckets of a limited size, in reverse order of registration, and each "
          "reduced as soon as it is full: do weights end as those of one process?")
      .problem("2025", "ddp_overlap_bucketed", 8);
}
SYSLAB_EXPERIMENT(ddp_overlap_bucketed, describe_ddp_overlap_bucketed);

registry::Experiment describe_ddp_bucketed_benchmarking() {
  return with_timed_classes(ddp_experiment("ddp_bucketed_benchmarking", {"none", "overlap", "bucketed", "planned"},
                                           {"xl25"}, {1, 10, 100, 1000}),
                            Strategy::bucketed, "bucketed")
      .title("DDP with buckets: benchmark")
      .question(
          "How does the time of a step depend on the size of buckets, and what does a plan computed from measured "
          "times choose?")
      .problem("2025", "ddp_bucketed_benchmarking", 3);
}
SYSLAB_EXPERIMENT(ddp_bucketed_benchmarking, describe_ddp_bucketed_benchmarking);

}  // namespace
}  // namespace syslab::experiment_ddp
