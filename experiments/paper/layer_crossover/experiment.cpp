// layer_crossover: the size from which computing takes longer than communicating, measured; the question is in
// README.md in this folder.
#include <memory>

#include "comm/accounting.hpp"
#include "core/build_info.hpp"
#include "device/stream.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "trials/case_ranks.hpp"
#include "trials/split_layer.hpp"
#include "worker/cases/rank_case.hpp"

namespace syslab::experiment_layer_crossover {
namespace {

using parallel::SplitLayer;
using registry::Need;
using registry::numbers;
using registry::text;

constexpr std::string_view kOnGpus = "nccl";

// bf16 on GPUs, where the hand-out counts 2 bytes an element and training multiplies in it; fp32 on the CPU, which has
// products of nothing less.
parallel::GatedLayer layer_from(const Params& params, std::string_view implementation) {
  return {.tokens = params.integer("tokens"),
          .d_model = params.integer("d_model"),
          .d_ff = params.integer("d_ff"),
          .element_bytes = implementation == kOnGpus ? 2 : 4};
}

std::shared_ptr<SplitLayer> layer_of(comm::Communicator& ranks, const worker::CaseRequest& request,
                                     device::Stream stream) {
  return std::make_shared<SplitLayer>(ranks, layer_from(request.params, request.implementation),
                                      parallel::parse_layer_split(request.params.text("layout")), request.seed, stream);
}

StepCheck found(const SplitLayer& layer) {
  return {.name = "y",
          .error = layer.error(),
          .tolerance = 1,
          .message = "worst error over its bound, against the whole layer in fp64",
          .fraction = layer.checked_fraction()};
}

std::vector<worker::RankSeries> series_of(SplitLayer& layer) {
  return {{.name = "time",
           .refresh = [&layer] { layer.refresh(); },
           .call = [&layer] { layer.forward(); },
           .results = [&layer] { return layer.results(); },
           .verify = [&layer] { return found(layer); }},
          {.name = "compute",
           .refresh =
               [&layer] {
                 layer.refresh();
                 layer.communicate();
               },
           .call = [&layer] { layer.compute(); }},
          {.name = "communicate", .refresh = [&layer] { layer.refresh(); }, .call = [&layer] { layer.communicate(); }}};
}

void run_case(worker::CaseContext& context) {
  const worker::CaseRequest& request = context.request();
  const std::unique_ptr<comm::Communicator> ranks =
      parallel::join(parallel::case_rank(request, request.implementation));
  std::shared_ptr<SplitLayer> layer;
  worker::RankCase made;
  made.device = ranks->kind();
  parallel::keep_in_step(made, *ranks);
  made.check = [&](device::Stream stream) {
    layer = layer_of(*ranks, request, stream);
    layer->refresh();
    layer->forward();
    return std::vector{found(*layer)};
  };
  made.start = [&](device::Stream) {
    worker::RankRun run;
    run.series = series_of(*layer);
    run.tell = [&](worker::CaseContext& told, const std::vector<std::vector<double>>&) {
      comm::check_accounting(*ranks);
      const parallel::PassCosts costs = layer->costs();
      told.metric("flops", "1", costs.flops);
      told.metric("sent_bytes", "B", costs.data_sent_bytes + costs.tensor_sent_bytes);
      told.metric("element_bytes", "B",
                  static_cast<double>(layer_from(request.params, request.implementation).element_bytes));
    };
    run.owner = layer;
    return run;
  };
  worker::run_rank_case(context, made);
}

registry::Experiment describe() {
  return registry::experiment("layer_crossover")
      .version("2")  // f is silu; it was max(u, 0)
      .title("From compute-bound to communication-bound, measured")
      .question(
          "One gated layer on several ranks, fully sharded or split over its hidden dimension: from how many tokens, "
          "or hidden numbers, on does computing take longer than communicating, and does the formula say so?")
      .problem("2026", "fsdp_tp_calcs", 0)
      .evidence({.need = Need::nice, .preset = "paper"})
      .evidence({.need = Need::nice, .preset = "laptop"})
      .tags({"communication"})
      .protocol("cs336")
      .axis("tokens", numbers({8, 32, 128, 512, 2048}), "B, of all ranks together")
      .axis("d_model", numbers({256}), "D")
      .axis("d_ff", numbers({8, 32, 128, 512, 2048}), "F")
      .closed_axis("layout", {text("fsdp"), text("tensor")},
                   "fsdp: a rank has its tokens and gathers all weights; tensor: all tokens and a part of F")
      .world_sizes(numbers({2, 4}))
      .preset("smoke", {{"tokens", numbers({8, 512})},
                        {"d_ff", numbers({8, 512})},
                        {"world_size", numbers({2})},
                        {"impl", {text("shm")}}})
      .preset("laptop", {{"impl", {text("shm")}}})
      .preset("paper", {{"tokens", numbers({512, 2048, 8192, 32768})},
                        {"d_model", numbers({4096})},
                        {"d_ff", numbers({512, 2048, 8192})},
                        {"device", {text("cuda")}},
                        {"impl", {text("nccl")}}})
      .implementation(
          {.name = "shm", .teaches = "fp32: products on the CPU, collectives through shared memory, in turn"})
      .implementation({.name = std::string(kOnGpus),
                       .teaches = "bf16, a GPU a rank: products by cuBLAS, summed in fp32, collectives over NVLink or "
                                  "PCIe, in turn",
                       .unavailable = build_info().cuda ? "" : "needs CUDA, which this build has not",
                       .device = DeviceKind::cuda})
      .metric("time", "s", "median of a forward pass, nothing overlapped; of the slowest rank at each (rank -1)")
      .metric("compute", "s", "of the three products and f alone")
      .metric("communicate", "s", "of the gather, or of the sum, alone")
      .metric("flops", "1", "of a rank's products: 6BDF/N")
      .metric("sent_bytes", "B", "by a rank around a ring: 3DF(N-1)/N or 2BD(N-1)/N elements")
      .metric("element_bytes", "B", "of what is multiplied and sent: 4 (fp32) or 2 (bf16)")
      .expects(
          [](const Params& params) { parallel::require_even(layer_from(params, {}), params.integer("world_size")); })
      .memory([](const Params& params, std::string_view implementation) {
        const auto bytes = static_cast<double>(layer_from(params, implementation).element_bytes);
        const auto tokens = static_cast<double>(params.integer("tokens"));
        const auto width = static_cast<double>(params.integer("d_model"));
        const auto hidden = static_cast<double>(params.integer("d_ff"));
        return bytes * (6 * width * hidden + 2 * tokens * (width + hidden));
      })
      .oom_is_an_answer()
      .runs(run_case);
}
SYSLAB_EXPERIMENT(layer_crossover, describe);

}  // namespace
}  // namespace syslab::experiment_layer_crossover
