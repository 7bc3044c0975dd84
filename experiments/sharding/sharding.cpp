// The experiments on sharding that differ only in texts and in what is sharded; their cases are in sharding_case.cpp
// and fsdp_case.cpp, the questions are in the README.md of their folders.
#include "experiments/sharding/fsdp_case.hpp"
#include "experiments/sharding/sharding_case.hpp"
#include "registry/values.hpp"

namespace syslab::experiment_sharding {
namespace {

registry::Builder with_classes(registry::Builder made) {
  take_classes(made);
  return made;
}

registry::Builder with_timed_classes(registry::Builder made) {
  time_classes(made);
  return made;
}

registry::Builder with_timed_fully_sharded_classes(registry::Builder made) {
  time_fully_sharded_classes(made);
  return made;
}

registry::Builder with_fully_sharded_classes(registry::Builder made) {
  take_fully_sharded_classes(made);
  return made;
}

registry::Experiment describe_optimizer_state_sharding() {
  return with_classes(sharding_experiment("optimizer_state_sharding", {"optimizer", "zero1", "zero2"}, {"small"}))
      .title("Optimizer state sharding")
      .question(
          "With the optimizer's state of each parameter on one rank alone, which updates it and sends it to the "
          "others: do weights end as those of one process?")
      .problem("2025", "optimizer_state_sharding", 15)
      .problem("2026", "optimizer_state_sharding", 15);
}
SYSLAB_EXPERIMENT(optimizer_state_sharding, describe_optimizer_state_sharding);

registry::Experiment describe_optimizer_state_sharding_accounting() {
  return with_timed_classes(sharding_experiment("optimizer_state_sharding_accounting",
                                                {"none", "optimizer", "zero1", "zero2"}, {"xl25", "xl26"}))
      .title("Optimizer state sharding accounting")
      .question(
          "How much memory does a rank hold after initialisation, before and after the update, with the optimizer's "
          "state divided and without; what does a step cost; and how does ZeRO's first stage differ?")
      .problem("2025", "optimizer_state_sharding_accounting", 5)
      .problem("2026", "optimizer_state_sharding_accounting", 5);
}
SYSLAB_EXPERIMENT(optimizer_state_sharding_accounting, describe_optimizer_state_sharding_accounting);

registry::Experiment describe_fsdp() {
  return with_fully_sharded_classes(fsdp_experiment("fsdp", {"small"}))
      .title("FSDP")
      .question(
          "Trained with every weight in parts on several processes, gathered for its use and freed: do weights end "
          "as those of one process on the whole batch?")
      .problem("2026", "fsdp", 15)
      .evidence({.preset = "laptop"})
      .evidence({.preset = "laptop", .laws = true})
      // The compute dtype, which only ranks of GPUs have.
      .evidence({.grid = {{"batch", {registry::number(8)}},
                          {"precision", {registry::text("fp32"), registry::text("bf16_fused")}},
                          {"granularity", {registry::text("layer")}},
                          {"impl", {registry::text("fused")}}}})
      .evidence({.need = registry::Need::nice, .preset = "paper"});
}
SYSLAB_EXPERIMENT(fsdp, describe_fsdp);

registry::Experiment describe_fsdp_accounting() {
  return with_timed_fully_sharded_classes(fsdp_experiment("fsdp_accounting", {"xl26"}))
      .title("FSDP accounting")
      .question(
          "How much memory does full sharding save beside a sharded optimizer, and is each layer's weight there when "
          "it is needed?")
      .problem("2026", "fsdp_accounting", 5)
      .evidence({.preset = "paper",
                 .grid = {{"precision", {registry::text("fp32")}}, {"granularity", {registry::text("layer")}}}})
      .evidence({.need = registry::Need::asked, .preset = "paper"})
      .evidence({.preset = "laptop", .in_small = true});
}
SYSLAB_EXPERIMENT(fsdp_accounting, describe_fsdp_accounting);

}  // namespace
}  // namespace syslab::experiment_sharding
