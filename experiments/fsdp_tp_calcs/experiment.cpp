// fsdp_tp_calcs: one gated layer under full sharding and tensor parallelism; the question is in README.md beside this
// file. Nothing is timed: the answer is arithmetic, counted twice.
#include "parallel/layer_answers.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "worker/check_number.hpp"

namespace syslab {
namespace {

void run_case(worker::CaseContext& context) {
  const parallel::Grid grid{context.params().integer("data_ranks"), context.params().integer("tensor_ranks")};
  const parallel::LayerAnswer answer =
      parallel::answer_layer(parallel::Strategy::fsdp_tensor, parallel::layer_from(context.params()), grid,
                             parallel::machine_from(context.params()));
  for (const parallel::Recount& one : answer.recounts) {
    worker::check_number(context, one.name, one.found, one.expected, one.tolerance, one.how);
  }
  for (const parallel::Number& one : answer.numbers) context.metric(one.name, one.unit, one.value);
}

Value number(std::int64_t value) { return value; }

registry::Experiment describe() {
  return registry::experiment("fsdp_tp_calcs")
      .title("Both together on paper")
      .question(
          "The same gated layer, sharded over one axis of devices and split over the other: how far does it go when "
          "the two axes communicate at once, and when one waits for the other?")
      .problem("2026", "fsdp_tp_calcs", 6)
      .tags({"parallel", "arithmetic"})
      .axes(registry::axes_of(parallel::layer_param_list()))
      .axis("data_ranks", {number(4), number(16)}, "N_F, devices that divide the tokens and shard the weights")
      .axis("tensor_ranks", {number(1), number(4)}, "N_T, devices that divide the hidden dimension")
      .preset("smoke", {{"tokens", {number(65536)}}, {"data_ranks", {number(4)}}, {"tensor_ranks", {number(2)}}})
      .preset("laptop", {})
      .preset("paper", {{"tokens", {number(4096), number(16384), number(65536), number(262144), number(1048576)}},
                        {"data_ranks", {number(1), number(4), number(16), number(64)}},
                        {"tensor_ranks", {number(1), number(2), number(4), number(8)}}})
      .implementation({.name = "predicted",
                       .teaches = "arithmetic: operations, bytes and times of a device, and the limits that follow"})
      .metric("forward_flops", "1", "operations of a device in the three matrix products of forward")
      .metric("backward_flops", "1", "and in the six of backward")
      .metric("forward_sent_bytes", "B", "that a device sends in forward")
      .metric("backward_sent_bytes", "B", "and in backward")
      .metric("forward_compute", "s", "forward_flops by the rate of computing")
      .metric("backward_compute", "s", "alike")
      .metric("forward_data_sent_bytes", "B", "that a device sends to gather weights in forward")
      .metric("forward_tensor_sent_bytes", "B", "that it sends to add up y")
      .metric("forward_communication_overlapped", "s", "when both axes communicate at once: the longer")
      .metric("forward_communication_serial", "s", "when one waits for the other: both")
      .metric("forward_limit_overlapped", "1",
              "the largest number of devices at which forward is bound by compute, not rounded, over all splits")
      .metric("forward_limit_serial", "1",
              "the same when one axis waits for the other; its split: forward_limit_serial_data and _tensor")
      .metric("forward_grid_overlapped_data", "1",
              "of the largest whole grid that is bound by compute, by trying; …_tensor its other side")
      .metric("forward_grid_serial_data", "1", "alike")
      .runs(run_case);
}

const registry::Experiment kFsdpTpCalcs = describe();
SYSLAB_EXPERIMENT(kFsdpTpCalcs);

}  // namespace
}  // namespace syslab
