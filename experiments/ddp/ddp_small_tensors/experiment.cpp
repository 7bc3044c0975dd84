// ddp_small_tensors: buckets of many small tensors, by the formula and measured; the question is in README.md in this
// folder.
#include <algorithm>
#include <memory>
#include <span>

#include "comm/accounting.hpp"
#include "core/error.hpp"
#include "device/stream.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "trials/case_ranks.hpp"
#include "trials/measured_data_parallel.hpp"
#include "trials/measured_times.hpp"
#include "trials/paced_gradients.hpp"
#include "worker/cases/rank_case.hpp"

namespace syslab::experiment_ddp_small_tensors {
namespace {

using parallel::PacedGradients;
using registry::Need;
using registry::number;
using registry::numbers;

parallel::PacedOptions options_from(const Params& params) {
  return {.tensors = params.integer("tensors"),
          .tensor_bytes = params.integer("tensor_bytes"),
          .bucket_bytes = params.integer("bucket_kb") * 1024,
          .pace = params.number("pace")};
}

// The sizes at which the law of transfers between ranks is measured, and those for which it is used.
void expect_transfers(const Params& params, std::int64_t ranks) {
  parallel::require_gradients(options_from(params));
  if (ranks > 1) return;
  throw Error(ErrorKind::usage,
              "ddp_small_tensors: one rank sends nothing, and what it exposes follows no law; take "
              "world_size=2 or more");
}

// A rank's step, and the times of its events in every sample.
struct Run {
  device::OwnedStream communication = parallel::communication_stream({});
  parallel::AffineTransfer law;
  std::unique_ptr<PacedGradients> step;
  std::vector<parallel::BucketTimeline> steps;

  StepCheck found() const {
    return {.name = "sums", .error = step->error(), .message = step->what() + ": every element, against the formula"};
  }
  void keep() {
    if (step->sync().options().timing && step->sync().steps() > 0) steps.push_back(step->sync().timeline());
  }
};

std::shared_ptr<Run> prepared(comm::Communicator& ranks, const Params& params) {
  auto run = std::make_shared<Run>();
  const parallel::PacedOptions options = options_from(params);
  // The law of back-to-back calls of the slowest rank, as queued buckets are.
  const auto curve = parallel::measure_curve(
      ranks, DType::f32, parallel::curve_sizes(options.tensors * options.tensor_bytes), run->communication);
  run->law = parallel::fit_affine(curve.points());
  run->step = std::make_unique<PacedGradients>(ranks, options, run->law, run->communication);
  return run;
}

void tell(worker::CaseContext& context, Run& run, std::size_t samples) {
  run.keep();
  const std::span<const parallel::BucketTimeline> steps = worker::last_of(run.steps, samples);
  if (!steps.empty()) {
    worker::emit_series(context, "exposed", steps,
                        [](const parallel::BucketTimeline& one) { return std::max(one.exposed().count(), 0.0); });
    worker::emit_series(context, "communicating", steps,
                        [](const parallel::BucketTimeline& one) { return one.busy().count(); });
    worker::emit_series(context, "backward", steps,
                        [](const parallel::BucketTimeline& one) { return one.backward_end().count(); });
  }
  const parallel::UniformStep uniform = run.step->uniform();
  context.metric("buckets", "1", run.step->sync().schedule().size());
  context.metric("gradient_bytes", "B", uniform.bytes);
  context.metric("bucket_bytes", "B", run.step->bucket_bytes());
  context.metric("overhead", "s", run.law.overhead.count());
  context.metric("rate", "GB/s", 1e-9 * run.law.bytes_per_second);
  context.metric("forecast_exposed", "s", run.step->forecast().count());
  context.metric("best_bucket_bytes", "B", parallel::best_bucket_bytes(uniform));
}

void run_case(worker::CaseContext& context) {
  expect_transfers(context.params(), context.world_size());
  const std::unique_ptr<comm::Communicator> ranks = parallel::join(parallel::case_rank(context.request(), "shm"));
  std::shared_ptr<Run> run;
  worker::RankCase made;
  parallel::keep_in_step(made, *ranks);
  made.check = [&](device::Stream stream) {
    run = prepared(*ranks, context.params());
    run->step->refresh();
    run->step->run(stream);
    device::synchronize(stream);
    return std::vector{run->found()};
  };
  made.start = [&](device::Stream stream) {
    worker::RankRun steps;
    steps.series = {{.name = "time",
                     .refresh =
                         [run] {
                           run->keep();
                           run->step->refresh();
                         },
                     .call = [run, stream] { run->step->run(stream); },
                     .verify = [run] { return run->found(); }}};
    steps.tell = [run, &ranks](worker::CaseContext& told, const std::vector<std::vector<double>>& seconds) {
      run->step->sync().check_bytes();
      comm::check_accounting(*ranks);
      tell(told, *run, seconds[0].size());
    };
    steps.owner = run;
    return steps;
  };
  worker::run_rank_case(context, made);
}

registry::Experiment describe() {
  return registry::experiment("ddp_small_tensors")
      .title("DDP buckets of many small tensors")
      .question(
          "With gradients in many small tensors, as many to be computed a second as can be sent: what do buckets of "
          "a size expose, by the formula and measured, and which size is best?")
      .problem("2025", "ddp_bucketed_benchmarking", 0)
      .evidence({.need = Need::asked, .parts = {"a"}, .preset = "laptop"})
      .evidence({.need = Need::nice, .parts = {"a"}, .preset = "paper"})
      .tags({"communication"})
      .protocol("cs336")
      .axis("tensors", {number(1000)}, "gradients, all of one size")
      .axis("tensor_bytes", {number(10'240)}, "of each, fp32")
      .axis("bucket_kb", numbers({10, 40, 160, 640, 2'560, 10'240}), "limit of a bucket, in 2^10 bytes")
      .axis("pace", {1.0}, "of computing: time for a tensor over time for its bytes on the wire")
      .world_sizes({number(2)})
      .preset("smoke", {{"tensors", {number(100)}}, {"bucket_kb", numbers({10, 100, 1'000})}})
      .preset("laptop", {})
      .preset("paper", {{"tensors", numbers({1'000, 4'000})},
                        {"bucket_kb", numbers({10, 20, 40, 80, 160, 320, 640, 1'280, 2'560, 5'120, 10'240})},
                        {"pace", {0.5, 1.0, 2.0}}})
      .implementation({.name = "shm", .teaches = "CPU ranks that sleep where a device would compute"})
      .metric("time", "s", "median of a backward pass and its communication; of the slowest rank at each (rank -1)")
      .metric("exposed", "s", "from the last gradient to the end of the last all-reduce")
      .metric("communicating", "s", "sum over buckets of the time from the start to the end of their all-reduce")
      .metric("backward", "s", "to the last gradient")
      .metric("buckets", "1", "all-reduces")
      .metric("gradient_bytes", "B", "of all tensors")
      .metric("bucket_bytes", "B", "of a bucket, on average")
      .metric("overhead", "s", "o of t = o + bytes/w, measured on these ranks before the first step")
      .metric("rate", "GB/s", "its w")
      .metric("forecast_exposed", "s", "o + b/w + max(0, (n - 1)(o + b/w - b·g)); at pace 1 s/(n·w) + n·o")
      .metric("best_bucket_bytes", "B", "that exposes least by that formula; at pace 1 √(s·w·o)")
      .expects([](const Params& params) { expect_transfers(params, params.integer("world_size")); })
      .memory([](const Params& params, std::string_view) {
        return 2 * static_cast<double>(params.integer("tensors")) * static_cast<double>(params.integer("tensor_bytes"));
      })
      .oom_is_an_answer()
      .runs(run_case);
}
SYSLAB_EXPERIMENT(ddp_small_tensors, describe);

}  // namespace
}  // namespace syslab::experiment_ddp_small_tensors
