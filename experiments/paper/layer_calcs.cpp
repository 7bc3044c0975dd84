// One gated layer on paper, divided in four ways: experiments that differ only in texts and layout. Their case is in
// layer_case.cpp, the questions are in the README.md of their folders.
#include "experiments/paper/layer_case.hpp"

namespace syslab::experiment_layer_calcs {
namespace {

registry::Experiment describe_data_parallel_calcs() {
  return layer_experiment("data_parallel_calcs", parallel::Layout::data_parallel)
      .title("Data parallel calculations")
      .question(
          "One gated feed-forward layer under data parallelism: what does a device compute and send, and up to how "
          "many devices does computing take longer?")
      .problem("2026", "data_parallel_calcs", 3);
}
SYSLAB_EXPERIMENT(data_parallel_calcs, describe_data_parallel_calcs);

registry::Experiment describe_fsdp_calcs() {
  return layer_experiment("fsdp_calcs", parallel::Layout::fsdp)
      .title("FSDP calculations")
      .question(
          "The same gated layer with its weights sharded: what does a device compute and send, and up to how many "
          "devices does computing take longer?")
      .problem("2026", "fsdp_calcs", 3);
}
SYSLAB_EXPERIMENT(fsdp_calcs, describe_fsdp_calcs);

registry::Experiment describe_tp_calcs() {
  return layer_experiment("tp_calcs", parallel::Layout::tensor_parallel)
      .title("Tensor parallel calculations")
      .question(
          "The same gated layer split along its hidden dimension: what is backward, what does a device compute and "
          "send, and up to how many devices does computing take longer?")
      .problem("2026", "tp_calcs", 4);
}
SYSLAB_EXPERIMENT(tp_calcs, describe_tp_calcs);

registry::Experiment describe_fsdp_tp_calcs() {
  return layer_experiment("fsdp_tp_calcs", parallel::Layout::fsdp_tensor)
      .title("FSDP + TP calculations")
      .question(
          "The same gated layer, sharded over one axis of devices and split over the other: how far does it go when "
          "the two axes communicate at once, and when one waits for the other?")
      .problem("2026", "fsdp_tp_calcs", 6);
}
SYSLAB_EXPERIMENT(fsdp_tp_calcs, describe_fsdp_tp_calcs);

}  // namespace
}  // namespace syslab::experiment_layer_calcs
