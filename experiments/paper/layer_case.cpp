#include "experiments/paper/layer_case.hpp"

#include <utility>

#include "registry/ladder.hpp"
#include "registry/values.hpp"
#include "worker/wire/check_number.hpp"

namespace syslab {
namespace {

using parallel::Grid;
using parallel::Layout;
using registry::number;

Grid grid_from(Layout layout, const Params& params) {
  switch (layout) {
    case Layout::fsdp_tensor:
      return {params.integer("data_ranks"), params.integer("tensor_ranks")};
    case Layout::tensor_parallel:
      return {1, params.integer("ranks")};
    default:
      return {params.integer("ranks"), 1};
  }
}

Values many_tokens() { return {number(4096), number(16384), number(65536), number(262144), number(1048576)}; }

void on_a_line(registry::Builder& made, Layout layout) {
  made.axis("ranks", {number(1), number(2), number(8), number(64)}, "N, devices")
      .preset("smoke", {{"tokens", {number(65536)}}, {"ranks", {number(8)}}})
      .preset("paper", {{"tokens", many_tokens()},
                        {"ranks", {number(1), number(2), number(4), number(8), number(16), number(64), number(256)}}})
      .metric("forward_communication", "s", "forward_sent_bytes by the rate of the link")
      .metric("backward_communication", "s", "alike");
  if (layout != Layout::data_parallel) {  // which has no bound in forward
    made.metric("forward_limit", "1",
                "the largest number of devices at which forward is bound by compute, not rounded");
  }
  made.metric("backward_limit", "1", "the largest number at which backward is");
}

void on_a_grid(registry::Builder& made) {
  made.axis("data_ranks", {number(4), number(16)}, "N₁, devices that divide the tokens and shard the weights")
      .axis("tensor_ranks", {number(1), number(4)}, "N₂, devices that divide the hidden dimension")
      .preset("smoke", {{"tokens", {number(65536)}}, {"data_ranks", {number(4)}}, {"tensor_ranks", {number(2)}}})
      .preset("paper", {{"tokens", many_tokens()},
                        {"data_ranks", {number(1), number(4), number(16), number(64)}},
                        {"tensor_ranks", {number(1), number(2), number(4), number(8)}}})
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
      .metric("forward_grid_serial_data", "1", "alike");
}

}  // namespace

registry::Builder layer_experiment(std::string id, Layout layout) {
  registry::Builder made = registry::experiment(std::move(id));
  made.tags({"parallel", "arithmetic"})
      .axes(registry::axes_of(parallel::layer_param_list()))
      .preset("laptop", {})
      .implementation({.name = "predicted",
                       .teaches = "arithmetic: operations, bytes and times of a device, and the limits that follow"})
      .metric("forward_flops", "1", "operations of a device in the three matrix products of forward")
      .metric("backward_flops", "1", "and in the six of backward")
      .metric("forward_sent_bytes", "B", "that a device sends in forward")
      .metric("backward_sent_bytes", "B", "and in backward")
      .metric("forward_compute", "s", "forward_flops by the rate of computing")
      .metric("backward_compute", "s", "alike");
  layout == Layout::fsdp_tensor ? on_a_grid(made) : on_a_line(made, layout);
  made.expects([layout](const Params& params) {
    parallel::validate(parallel::layer_from(params));
    parallel::validate(grid_from(layout, params));
    parallel::validate(parallel::machine_from(params));
  });
  made.evidence({.preset = "paper"});
  return made.runs([layout](worker::CaseContext& context) {
    const Params& params = context.params();
    worker::tell_answer(context, parallel::answer_layer(layout, parallel::layer_from(params), grid_from(layout, params),
                                                        parallel::machine_from(params)));
  });
}

}  // namespace syslab
