// layer_crossover: from where computing takes longer than communicating, measured; the question is in README.md beside
// this file.
#include <memory>

#include "comm/accounting.hpp"
#include "device/stream.hpp"
#include "parallel/case_ranks.hpp"
#include "parallel/split_layer.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "worker/rank_case.hpp"

namespace syslab {
namespace {

using parallel::SplitLayer;
using registry::numbers;
using registry::text;

parallel::GatedLayer layer_from(const Params& params) {
  return {.tokens = params.integer("tokens"),
          .d_model = params.integer("d_model"),
          .d_ff = params.integer("d_ff"),
          .element_bytes = sizeof(float)};
}

std::shared_ptr<SplitLayer> layer_of(comm::Communicator& ranks, const worker::CaseRequest& request) {
  const Params& params = request.params;
  return std::make_shared<SplitLayer>(ranks, layer_from(params), parallel::parse_layer_split(params.text("layout")),
                                      request.seed);
}

worker::StepCheck found(const SplitLayer& layer) {
  return {.name = "y",
          .error = layer.error(),
          .tolerance = 1,
          .message = "worst error over its bound, against the whole layer in fp64",
          .fraction = layer.checked_fraction()};
}

std::vector<worker::RankSeries> series_of(SplitLayer& layer, device::Stream stream) {
  return {{.name = "time",
           .refresh = [&layer] { layer.refresh(); },
           .call = [&layer, stream] { layer.forward(stream); },
           .verify = [&layer] { return found(layer); }},
          {.name = "compute",
           .refresh =
               [&layer, stream] {
                 layer.refresh();
                 layer.communicate(stream);
               },
           .call = [&layer] { layer.compute(); }},
          {.name = "communicate",
           .refresh = [&layer] { layer.refresh(); },
           .call = [&layer, stream] { layer.communicate(stream); }}};
}

void run_case(worker::CaseContext& context) {
  const std::unique_ptr<comm::Communicator> ranks = parallel::join(parallel::case_rank(context.request(), "shm"));
  std::shared_ptr<SplitLayer> layer;
  worker::RankCase made;
  made.of_first = [&](double own) { return parallel::of_first(*ranks, own); };
  made.barrier = [&] { ranks->barrier(); };
  made.check = [&](device::Stream stream) {
    layer = layer_of(*ranks, context.request());
    layer->refresh();
    layer->forward(stream);
    return std::vector{found(*layer)};
  };
  made.start = [&](device::Stream stream) {
    worker::RankRun run;
    run.series = series_of(*layer, stream);
    run.tell = [&](worker::CaseContext& told, const std::vector<std::vector<double>>&) {
      comm::check_accounting(*ranks);
      const parallel::PassCosts costs = layer->costs();
      told.metric("flops", "1", costs.flops);
      told.metric("sent_bytes", "B", costs.data_sent_bytes + costs.tensor_sent_bytes);
    };
    run.owner = layer;
    return run;
  };
  worker::run_rank_case(context, made);
}

const registry::Experiment kExperiment =
    registry::experiment("layer_crossover")
        .title("Where communication becomes the limit, measured")
        .question(
            "One gated layer on several ranks, fully sharded or split over its hidden dimension: from how many tokens, "
            "or hidden numbers, on does computing take longer than communicating, and does the formula say so?")
        .problem("2026", "fsdp_tp_calcs", 0)
        .tags({"communication"})
        .protocol("cs336")
        .axis("tokens", numbers({8, 32, 128, 512, 2048}), "B, of all ranks together")
        .axis("d_model", numbers({256}), "D")
        .axis("d_ff", numbers({8, 32, 128, 512, 2048}), "F")
        .closed_axis("layout", {text("fsdp"), text("tensor")},
                     "fsdp: a rank has its tokens and gathers all weights; tensor: all tokens and a part of F")
        .world_sizes(numbers({2, 4}))
        .preset("smoke", {{"tokens", numbers({8, 512})}, {"d_ff", numbers({8, 512})}, {"world_size", numbers({2})}})
        .preset("laptop", {})
        .preset("paper", {})
        .implementation({.name = "shm", .teaches = "products on the CPU, collectives through shared memory, in turn"})
        .metric("time", "s", "median of a forward pass, nothing overlapped; of the slowest rank at each (rank -1)")
        .metric("compute", "s", "of the three products and f alone")
        .metric("communicate", "s", "of the gather, or of the sum, alone")
        .metric("flops", "1", "of a rank's products: 6BDF/N")
        .metric("sent_bytes", "B", "by a rank around a ring: 3DF(N-1)/N or 2BD(N-1)/N elements of 4 bytes")
        .expects([](const Params& params) { parallel::require_even(layer_from(params), params.integer("world_size")); })
        .memory([](const Params& params, std::string_view) {
          const auto tokens = static_cast<double>(params.integer("tokens"));
          const auto width = static_cast<double>(params.integer("d_model"));
          const auto hidden = static_cast<double>(params.integer("d_ff"));
          return 4 * (6 * width * hidden + 2 * tokens * (width + hidden));
        })
        .oom_is_an_answer()
        .runs(run_case);
SYSLAB_EXPERIMENT(kExperiment);

}  // namespace
}  // namespace syslab
