#include "experiments/naive_ddp_benchmarking/ddp_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "parallel/case_ranks.hpp"
#include "parallel/measured_data_parallel.hpp"
#include "registry/ladder.hpp"
#include "stats/summary.hpp"
#include "train/ladder.hpp"
#include "train/params.hpp"
#include "worker/rank_case.hpp"

namespace syslab {
namespace {

using parallel::DataParallelWorkload;
using parallel::DataParallelWorkloadOptions;
using parallel::MeasuredDataParallel;
using worker::StepCheck;

constexpr const char* kNone = "none";
constexpr const char* kBuckets = "bucket_mb";

Value number(std::int64_t value) { return value; }
Value text(std::string_view value) { return std::string(value); }

DataParallelWorkloadOptions options_of(const worker::CaseRequest& request, const train::Rung& rung) {
  DataParallelWorkloadOptions options;
  options.step = train::workload_from(request.params, rung);
  if (options.step.batch % request.world_size != 0) {
    throw Error(ErrorKind::usage, fmt::format("a batch of {} rows is not divided evenly among {} ranks",
                                              options.step.batch, request.world_size));
  }
  options.step.batch /= request.world_size;
  const std::string strategy = request.params.text("strategy");
  options.communicates = strategy != kNone;
  options.sync.strategy = options.communicates ? parallel::parse_strategy(strategy) : parallel::Strategy::flat_view;
  options.sync.timing = options.communicates && request.world_size > 1;
  if (request.params.has(kBuckets) && options.sync.strategy == parallel::Strategy::bucketed) {
    options.sync.bucket_mb = {static_cast<double>(request.params.integer(kBuckets))};
  }
  return options;
}

// The strategy's certificate to the bit, and the model of this rank against fp64.
std::vector<StepCheck> checked(const MeasuredDataParallel& measured, comm::Communicator& ranks, device::Stream stream) {
  StepCheck certificate{.name = "certificate",
                        .message = "a network of exact numbers ends with the bits of one process"};
  try {
    std::vector<StepCheck> all{certificate};
    for (const auto& one : measured.check(ranks, stream))
      all.push_back({one.name, one.error, one.tolerance, one.message});
    return all;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::check) throw;
    certificate.error = std::numeric_limits<double>::quiet_NaN();
    certificate.message = error.what();
    return {certificate};
  }
}

// What the steps' own events tell of their communication.
class Timelines {
 public:
  explicit Timelines(DataParallelWorkload& run) : run_(run) {}

  // Of the step before, which has been waited for.
  void keep() {
    if (!run_.step().sync().options().timing || run_.step().sync().steps() == 0) return;
    const parallel::Schedule schedule = run_.step().sync().timeline();
    Seconds busy{};
    for (const parallel::BucketTimes& bucket : schedule.buckets) busy += bucket.end - bucket.start;
    busy_.push_back(busy.count());
    exposed_.push_back(std::max(schedule.exposed().count(), 0.0));
    backward_.push_back(schedule.backward_end().count());
    last_ = schedule;
  }

  // Of the last `count` steps: those before warmed up.
  void tell(worker::CaseContext& context, std::size_t count) const {
    if (!last_ || busy_.size() < count) return;
    const auto last = [count](const std::vector<double>& all) {
      return std::vector<double>(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
    };
    worker::emit_series(context, "communicating", last(busy_));
    worker::emit_series(context, "exposed", last(exposed_));
    worker::emit_series(context, "gradients_final", last(backward_));
    double overlapped = 0, busy = 0;
    for (std::size_t i = busy_.size() - count; i < busy_.size(); ++i) {
      overlapped += std::max(busy_[i] - exposed_[i], 0.0);
      busy += busy_[i];
    }
    context.metric("overlapped", "1", busy > 0 ? overlapped / busy : 0);
    const auto nanoseconds = [](Seconds time) { return static_cast<std::int64_t>(std::llround(1e9 * time.count())); };
    worker::SpanRecord span{.track = "compute", .name = "backward", .category = "phase", .start_ns = 0};
    span.end_ns = nanoseconds(last_->backward_end());
    context.emit(span);
    for (std::size_t i = 0; i < last_->buckets.size(); ++i) {
      span = {.track = "communication", .name = fmt::format("bucket {}", i), .category = "collective"};
      span.start_ns = nanoseconds(last_->buckets[i].start);
      span.end_ns = nanoseconds(last_->buckets[i].end);
      context.emit(span);
    }
  }

 private:
  DataParallelWorkload& run_;
  std::vector<double> busy_, exposed_, backward_;
  std::optional<parallel::Schedule> last_;
};

struct Run {
  std::shared_ptr<DataParallelWorkload> workload;
  Timelines timelines;
};

worker::RankRun started(const MeasuredDataParallel& measured, comm::Communicator& ranks, device::Stream stream) {
  const std::shared_ptr<DataParallelWorkload> workload = measured.start(ranks, stream);
  const auto run = std::make_shared<Run>(Run{workload, Timelines(*workload)});
  worker::RankSeries steps;
  steps.refresh = [run] {
    run->timelines.keep();
    run->workload->refresh();
  };
  steps.call = [run] { run->workload->run(); };
  steps.verify = [run] {
    const double loss = run->workload->loss();
    return StepCheck{.name = "loss",
                     .error = std::isfinite(loss) ? 0 : std::numeric_limits<double>::quiet_NaN(),
                     .message = fmt::format("the mean over all rows is {}", loss)};
  };
  worker::RankRun made;
  made.owner = run;
  made.series = {steps};
  made.tell = [run, &measured](worker::CaseContext& context, const std::vector<std::vector<double>>& seconds) {
    run->timelines.keep();
    run->workload->step().check();  // the same weights on all ranks, and every byte that the plan says
    const double median = stats::summarize(seconds[0]).median;
    context.metric("tokens_per_second", "1/s", measured.tokens * context.world_size() / median);
    context.metric("loss", "1", run->workload->loss());
    context.metric("parameters", "1", measured.parameters);
    const bool travels = run->workload->step().sync().options().timing;
    context.metric("gradient_bytes", "B", travels ? measured.gradient_bytes : 0);
    context.metric("buckets", "1", travels ? run->workload->step().sync().plan().size() : 0);
    if (const auto& forecast = run->workload->forecast()) {
      context.metric("forecast_exposed", "s", forecast->schedule.exposed().count());
      context.metric("bound_exposed", "s", (forecast->bound - forecast->schedule.backward_end()).count());
    }
    run->timelines.tell(context, seconds[0].size());
  };
  return made;
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const MeasuredDataParallel measured =
      parallel::measured_data_parallel(options_of(context.request(), rung), rung, context.request().seed);
  if (measured.refusal) throw worker::Unsupported(*measured.refusal);
  const std::unique_ptr<comm::Communicator> ranks =
      parallel::join(parallel::case_rank(context.request(), rung.device == device::Kind::cpu ? "shm" : "nccl"));
  worker::RankCase made;
  made.device = measured.device;
  made.of_first = [&](double own) { return parallel::of_first(*ranks, own); };
  made.barrier = [&] { ranks->barrier(); };
  made.check = [&](device::Stream stream) { return checked(measured, *ranks, stream); };
  made.start = [&](device::Stream stream) { return started(measured, *ranks, stream); };
  worker::run_rank_case(context, made);
}

registry::Values texts(const std::vector<std::string>& words) {
  registry::Values values;
  for (const std::string& word : words) values.push_back(text(word));
  return values;
}

// The whole batch: more than a rank's share of it, whose size depends on how many there are.
double memory(const Params& params, std::string_view implementation) {
  return train::predicted_bytes(train::workload_from(params, train::find_rung(implementation)));
}

void add_limits(registry::Builder& made, const std::vector<std::int64_t>& bucket_mb) {
  registry::Values values{number(0)};
  for (const std::int64_t one : bucket_mb) values.push_back(number(one));
  made.axis(kBuckets, values, "limit of a bucket of strategy bucketed, in 2^20 bytes; 0 for the others")
      .skip_if("a limit of buckets is of strategy bucketed alone", [](const Params& params, std::string_view) {
        return (params.text("strategy") == "bucketed") != (params.integer(kBuckets) > 0);
      });
}

}  // namespace

registry::Builder ddp_experiment(std::string id, const std::vector<std::string>& strategies,
                                 const std::vector<std::int64_t>& bucket_mb) {
  std::vector<std::string> others{kNone};
  for (const parallel::StrategyInfo& one : parallel::strategies()) others.emplace_back(to_string(one.strategy));
  std::erase_if(others, [&](const std::string& word) { return std::ranges::count(strategies, word) > 0; });
  registry::Builder made = registry::experiment(std::move(id));
  made.tags({"communication", "model"})
      .protocol("cs336")
      .axes(registry::axes_of(
          train::param_list(),
          {{"model", {text("xl25"), text("xl26")}}, {"context", {number(128)}}, {"precision", {text("fp32")}}}))
      .closed_axis("strategy", texts(strategies),
                   "how gradients are reduced; none: not at all, which is the step without communication",
                   texts(others))
      .world_sizes({number(2)})
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(16)}},
                        {"device", {text("cpu")}},
                        {"impl", {text("host")}}})
      .preset("laptop", {{"model", {text("cpu10m")}},
                         {"batch", {number(2)}},
                         {"context", {number(64)}},
                         {"device", {text("cpu")}},
                         {"impl", {text("host")}}})
      .preset("paper", {{"model", {text("xl25"), text("xl26")}},
                        {"batch", {number(4), number(8)}},
                        {"context", {number(128), number(512)}},
                        {"precision", {text("fp32"), text("bf16_amp")}},
                        {"impl", {text("fused")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .skip_if("a recorded graph has no place for its gradients' events: several ranks run without one",
               [](const Params&, std::string_view implementation) { return implementation == "graph"; })
      .metric("time", "s", "median of a whole step; of the slowest rank at each (rank -1)")
      .metric("communicating", "s", "sum over buckets of the time from the start to the end of their all-reduce")
      .metric("exposed", "s", "from the last gradient to the end of the last all-reduce: what the step is longer by")
      .metric("gradients_final", "s", "from the beginning of the backward pass to its last gradient")
      .metric("overlapped", "1", "part of the communication that was under the backward pass")
      .metric("buckets", "1", "all-reduces of a step")
      .metric("gradient_bytes", "B", "that a rank puts into them")
      .metric("forecast_exposed", "s", "of `planned`: what the plan should expose, told before the first step")
      .metric("bound_exposed", "s", "of `planned`: what a link as fast must expose at least")
      .metric("tokens_per_second", "1/s", "of all ranks, over this rank's median")
      .metric("parameters", "1", "of the model")
      .metric("loss", "1", "of the last step, over the rows of all ranks")
      .memory(memory)
      .oom_is_an_answer()
      .runs(run_case);
  if (!bucket_mb.empty()) add_limits(made, bucket_mb);
  return made;
}

}  // namespace syslab
