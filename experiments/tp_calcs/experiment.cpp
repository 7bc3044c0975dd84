// tp_calcs: one gated layer under tensor parallelism; the question is in README.md beside this file.
// Nothing is timed: the answer is arithmetic, counted twice.
#include "parallel/layer_answers.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "worker/check_number.hpp"

namespace syslab {
namespace {

void run_case(worker::CaseContext& context) {
  const parallel::Grid grid{1, context.params().integer("ranks")};
  const parallel::LayerAnswer answer =
      parallel::answer_layer(parallel::Strategy::tensor_parallel, parallel::layer_from(context.params()), grid,
                             parallel::machine_from(context.params()));
  for (const parallel::Recount& one : answer.recounts) {
    worker::check_number(context, one.name, one.found, one.expected, one.tolerance, one.how);
  }
  for (const parallel::Number& one : answer.numbers) context.metric(one.name, one.unit, one.value);
}

Value number(std::int64_t value) { return value; }

registry::Experiment describe() {
  return registry::experiment("tp_calcs")
      .title("Tensor parallel on paper")
      .question(
          "The same gated layer split along its hidden dimension: what is backward, what does a device compute and "
          "send, and up to how many devices does computing take longer?")
      .problem("2026", "tp_calcs", 4)
      .tags({"parallel", "arithmetic"})
      .axes(registry::axes_of(parallel::layer_param_list()))
      .axis("ranks", {number(1), number(2), number(8), number(64)}, "N, devices")
      .preset("smoke", {{"tokens", {number(65536)}}, {"ranks", {number(8)}}})
      .preset("laptop", {})
      .preset("paper", {{"tokens", {number(4096), number(16384), number(65536), number(262144), number(1048576)}},
                        {"ranks", {number(1), number(2), number(4), number(8), number(16), number(64), number(256)}}})
      .implementation({.name = "predicted",
                       .teaches = "arithmetic: operations, bytes and times of a device, and the limits that follow"})
      .metric("forward_flops", "1", "operations of a device in the three matrix products of forward")
      .metric("backward_flops", "1", "and in the six of backward")
      .metric("forward_sent_bytes", "B", "that a device sends in forward")
      .metric("backward_sent_bytes", "B", "and in backward")
      .metric("forward_compute", "s", "forward_flops by the rate of computing")
      .metric("backward_compute", "s", "alike")
      .metric("forward_communication", "s", "forward_sent_bytes by the rate of the link")
      .metric("backward_communication", "s", "alike")
      .metric("forward_limit", "1", "the largest number of devices at which forward is bound by compute, not rounded")
      .metric("backward_limit", "1", "and backward")
      .runs(run_case);
}

const registry::Experiment kTpCalcs = describe();
SYSLAB_EXPERIMENT(kTpCalcs);

}  // namespace
}  // namespace syslab
