#include "experiments/naive_ddp_benchmarking/ddp_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "device/event.hpp"
#include "experiments/naive_ddp_benchmarking/rank_training.hpp"
#include "parallel/measured_data_parallel.hpp"
#include "registry/ladder.hpp"
#include "stats/summary.hpp"
#include "train/ladder.hpp"
#include "train/measured_step.hpp"
#include "train/params.hpp"

namespace syslab {
namespace {

using parallel::DataParallelWorkload;
using parallel::DataParallelWorkloadOptions;
using parallel::MeasuredDataParallel;

constexpr const char* kNone = "none";
constexpr const char* kBuckets = "bucket_mb";

Value number(std::int64_t value) { return value; }
Value text(std::string_view value) { return std::string(value); }

DataParallelWorkloadOptions options_of(const worker::CaseRequest& request, const train::Rung& rung) {
  DataParallelWorkloadOptions options;
  options.step = rank_workload(request, rung);
  const std::string strategy = request.params.text("strategy");
  options.communicates = strategy != kNone;
  options.sync.strategy = options.communicates ? parallel::parse_strategy(strategy) : parallel::Strategy::flat_view;
  options.sync.timing = options.communicates && request.world_size > 1;
  if (request.params.has(kBuckets) && options.sync.strategy == parallel::Strategy::bucketed) {
    options.sync.bucket_mb = {static_cast<double>(request.params.integer(kBuckets))};
  }
  return options;
}

// What the events of a step tell of it, on the stream that computes and on the one that communicates.
class Phases {
 public:
  explicit Phases(DataParallelWorkload& run, device::Stream stream) : run_(run), stream_(stream) {
    for (int i = 0; i < 4; ++i) marks_.emplace_back(device::place_of(stream), device::Timing::yes);
  }

  void step() {
    marks_[0].record(stream_);
    run_.forward();
    marks_[1].record(stream_);
    run_.backward();
    marks_[2].record(stream_);
    run_.update();
    marks_[3].record(stream_);
    stepped_ = true;
  }

  // Of the step before, which has been waited for.
  void keep() {
    if (!stepped_) return;
    const auto since_begin = [this](int mark) { return Seconds(elapsed(marks_[0], marks_.at(mark))).count(); };
    Kept one{.forward = since_begin(1), .backward_end = since_begin(2), .end = since_begin(3)};
    one.communication_end = one.backward_end;
    if (run_.step().sync().options().timing) {
      one.schedule = run_.step().sync().timeline();
      for (const parallel::BucketTimes& bucket : one.schedule->buckets) one.busy += (bucket.end - bucket.start).count();
      one.backward_end = one.schedule->backward_end().count();
      one.communication_end = std::max(one.schedule->end().count(), one.backward_end);
    }
    kept_.push_back(std::move(one));
  }

  // Of the last `count` steps: those before warmed up.
  void tell(worker::CaseContext& context, std::size_t count) const {
    if (kept_.size() < count) return;
    const auto last = [&](const char* name, auto value) {
      std::vector<double> values;
      for (std::size_t i = kept_.size() - count; i < kept_.size(); ++i) values.push_back(value(kept_[i]));
      worker::emit_series(context, name, values);
    };
    last("forward", [](const Kept& one) { return one.forward; });
    last("backward", [](const Kept& one) { return one.backward_end - one.forward; });
    last("update", [](const Kept& one) { return std::max(one.end - one.communication_end, 0.0); });
    if (kept_.back().schedule) {
      last("communicating", [](const Kept& one) { return one.busy; });
      last("exposed", [](const Kept& one) { return one.exposed(); });
      double hidden = 0, busy = 0;
      for (std::size_t i = kept_.size() - count; i < kept_.size(); ++i) {
        hidden += std::max(kept_[i].busy - kept_[i].exposed(), 0.0);
        busy += kept_[i].busy;
      }
      context.metric("overlapped", "1", busy > 0 ? hidden / busy : 0);
    }
    draw(context, kept_.back());
  }

 private:
  struct Kept {  // since the beginning of the step, in seconds
    double forward = 0, backward_end = 0, communication_end = 0, end = 0, busy = 0;
    std::optional<parallel::Schedule> schedule;

    double exposed() const { return communication_end - backward_end; }
  };

  static void draw(worker::CaseContext& context, const Kept& step) {
    const auto span = [&](const char* track, std::string name, const char* category, double begin, double end) {
      context.emit(worker::SpanRecord{.track = track,
                                      .name = std::move(name),
                                      .category = category,
                                      .start_ns = std::llround(1e9 * begin),
                                      .end_ns = std::llround(1e9 * std::max(begin, end))});
    };
    span("compute", "forward", "phase", 0, step.forward);
    span("compute", "backward", "phase", step.forward, step.backward_end);
    span("compute", "update", "phase", step.communication_end, step.end);
    if (!step.schedule) return;
    for (std::size_t i = 0; i < step.schedule->buckets.size(); ++i) {
      const parallel::BucketTimes& bucket = step.schedule->buckets[i];
      span("communication", fmt::format("bucket {}", i), "collective", bucket.start.count(), bucket.end.count());
    }
  }

  DataParallelWorkload& run_;
  device::Stream stream_;
  std::vector<device::Event> marks_;  // begin, and the ends of forward, backward and update
  bool stepped_ = false;
  std::vector<Kept> kept_;
};

struct Run {
  std::shared_ptr<DataParallelWorkload> workload;
  Phases phases;
};

worker::RankRun started(const MeasuredDataParallel& measured, comm::Communicator& ranks, device::Stream stream) {
  const std::shared_ptr<DataParallelWorkload> workload = measured.start(ranks, stream);
  const auto run = std::make_shared<Run>(Run{workload, Phases(*workload, stream)});
  worker::RankSeries steps = training_steps(workload);
  steps.refresh = [run, refresh = steps.refresh] {
    run->phases.keep();
    refresh();
  };
  steps.call = [run] { run->phases.step(); };
  worker::RankRun made;
  made.owner = run;
  made.series = {steps};
  made.tell = [run, &measured](worker::CaseContext& context, const std::vector<std::vector<double>>& seconds) {
    run->phases.keep();
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
    run->phases.tell(context, seconds[0].size());
  };
  return made;
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const MeasuredDataParallel measured =
      parallel::measured_data_parallel(options_of(context.request(), rung), rung, context.request().seed);
  run_on_ranks(context, measured,
               [&](comm::Communicator& ranks, device::Stream stream) { return started(measured, ranks, stream); });
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
                                 const std::vector<std::string>& models, const std::vector<std::int64_t>& bucket_mb) {
  std::vector<std::string> others{kNone};
  for (const parallel::StrategyInfo& one : parallel::strategies()) others.emplace_back(to_string(one.strategy));
  std::erase_if(others, [&](const std::string& word) { return std::ranges::count(strategies, word) > 0; });
  registry::Builder made = registry::experiment(std::move(id));
  made.tags({"communication", "model"})
      .protocol("cs336")
      .axes(registry::axes_of(train::param_list(),
                              {{"model", texts(models)}, {"context", {number(128)}}, {"precision", {text("fp32")}}}))
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
      .implementations(registry::implementations_of(train::ladder()))
      .refuses(train::refusal_by_axes)
      .skip_if("a recorded graph has no place for its gradients' events: several ranks run without one",
               [](const Params&, std::string_view implementation) { return implementation == "graph"; })
      .metric("time", "s", "median of a whole step; of the slowest rank at each (rank -1)")
      .metric("communicating", "s", "sum over buckets of the time from the start to the end of their all-reduce")
      .metric("exposed", "s", "from the last gradient to the end of the last all-reduce: what the step is longer by")
      .metric("forward", "s", "of the step's phases; with the loss")
      .metric("backward", "s", "from there to the last gradient")
      .metric("update", "s", "from the end of the last all-reduce to the end of the step: norm and optimizer")
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
  // To prove a strategy takes one model and one size.
  if (std::ranges::count(strategies, kNone) > 0) {
    made.preset("paper", {{"model", texts(models)},
                          {"batch", {number(8)}},
                          {"context", {number(128), number(512)}},
                          {"precision", {text("fp32"), text("bf16_amp")}},
                          {"impl", {text("fused")}}});
  } else {
    made.preset("paper", {{"batch", {number(8)}}, {"impl", {text("fused")}}});
  }
  if (!bucket_mb.empty()) add_limits(made, bucket_mb);
  return made;
}

}  // namespace syslab
