#include "experiments/fsdp/fsdp_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/event.hpp"
#include "experiments/naive_ddp_benchmarking/rank_training.hpp"
#include "parallel/fsdp_state.hpp"
#include "parallel/measured_fsdp.hpp"
#include "parallel/rank_memory.hpp"
#include "registry/ladder.hpp"
#include "stats/summary.hpp"
#include "train/ladder.hpp"
#include "train/measured_step.hpp"
#include "train/params.hpp"
#include "worker/rank_case.hpp"

namespace syslab {
namespace {

using parallel::FsdpWorkload;
using parallel::FsdpWorkloadOptions;
using parallel::GatherTimes;
using parallel::MeasuredFsdp;

Value number(std::int64_t value) { return value; }
Value text(std::string_view value) { return std::string(value); }

parallel::FsdpStepOptions sharding_of(const Params& params) {
  return parallel::fsdp_step_options(parallel::parse_granularity(params.text("granularity")));
}

FsdpWorkloadOptions options_of(const worker::CaseRequest& request, const train::Rung& rung) {
  FsdpWorkloadOptions options{.step = rank_workload(request, rung), .sharding = sharding_of(request.params)};
  options.sharding.fsdp.gather.timing = true;
  return options;
}

// What the events of steps tell of them.
class Phases {
 public:
  Phases(FsdpWorkload& run, device::Stream stream) : run_(run), stream_(stream) {
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
    const auto mark = [this](int one) { return Seconds(elapsed(marks_[0], marks_.at(one))).count(); };
    Kept made{
        .forward = mark(1), .backward = mark(2), .end = mark(3), .gathers = run_.step().fsdp().gathered().times()};
    for (const GatherTimes& one : made.gathers) {
      (one.forward ? made.exposed_forward : made.exposed_backward) += one.exposed().count();
      made.gathering += (one.end - one.start).count();
    }
    kept_.push_back(std::move(made));
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
    last("backward", [](const Kept& one) { return one.backward - one.forward; });
    last("update", [](const Kept& one) { return one.end - one.backward; });
    last("gathering", [](const Kept& one) { return one.gathering; });
    last("exposed_forward", [](const Kept& one) { return one.exposed_forward; });
    last("exposed_backward", [](const Kept& one) { return one.exposed_backward; });
    draw(context, kept_.back());
  }

 private:
  struct Kept {  // since the beginning of the step, in seconds
    double forward = 0, backward = 0, end = 0, exposed_forward = 0, exposed_backward = 0, gathering = 0;
    std::vector<GatherTimes> gathers;
  };

  // The last step as spans: its phases; of each gather when it ran, and how long computing waited for it.
  void draw(worker::CaseContext& context, const Kept& step) const {
    const auto span = [&](const char* track, std::string name, const char* category, double begin, double end) {
      context.emit(worker::SpanRecord{.track = track,
                                      .name = std::move(name),
                                      .category = category,
                                      .start_ns = std::llround(1e9 * begin),
                                      .end_ns = std::llround(1e9 * std::max(begin, end))});
    };
    span("compute", "forward", "phase", 0, step.forward);
    span("compute", "backward", "phase", step.forward, step.backward);
    span("compute", "update", "phase", step.backward, step.end);
    for (const GatherTimes& one : step.gathers) {
      const std::string name = run_.unit_name(one.unit);
      const char* pass = one.forward ? "forward" : "backward";
      span("gather", name, pass, one.start.count(), one.end.count());
      span("wait", name, pass, one.needed.count(), one.first_use.count());
    }
  }

  FsdpWorkload& run_;
  device::Stream stream_;
  std::vector<device::Event> marks_;  // begin, and the ends of forward, backward and update
  bool stepped_ = false;
  std::vector<Kept> kept_;
};

struct Run {
  std::shared_ptr<FsdpWorkload> workload;
  Phases phases;
};

void tell_bytes(worker::CaseContext& context, FsdpWorkload& run, const model::ModelConfig& config) {
  const parallel::FsdpBytes held = run.step().bytes();
  const parallel::FsdpState formula = parallel::fsdp_state(config, context.world_size(), parallel::kFp32State);
  const auto metric = [&](const char* name, auto bytes) { context.metric(name, "B", static_cast<double>(bytes)); };
  metric("state_bytes", held.state());
  metric("formula_bytes", formula.rank_bytes);
  metric("padding_bytes", held.padding);
  metric("slot_bytes", held.slots);
  std::int64_t gathered = 0;
  for (const GatherTimes& one : run.step().fsdp().gathered().times()) gathered += one.bytes;
  metric("gathered_bytes", gathered);
  if (static_cast<double>(held.state()) - static_cast<double>(held.padding) != formula.rank_bytes) {
    throw worker::CheckFailed(fmt::format("{} bytes of state, {} of them padding, where the formula has {}",
                                          held.state(), held.padding, formula.rank_bytes));
  }
}

worker::RankRun started(const MeasuredFsdp& measured, const model::ModelConfig& config, comm::Communicator& ranks,
                        device::Stream stream) {
  const std::shared_ptr<FsdpWorkload> workload = measured.start(ranks, stream);
  const auto run = std::make_shared<Run>(Run{workload, Phases(*workload, stream)});
  worker::RankSeries steps = training_steps(workload);
  steps.refresh = [run] {
    run->phases.keep();
    run->workload->refresh();
  };
  steps.call = [run] { run->phases.step(); };
  worker::RankRun made;
  made.owner = run;
  made.series = {steps};
  made.tell = [run, &measured, config](worker::CaseContext& context, const std::vector<std::vector<double>>& seconds) {
    run->phases.keep();
    run->workload->step().check();  // the same norms on all ranks, and every byte that the plan says
    tell_bytes(context, *run->workload, config);
    const double median = stats::summarize(seconds[0]).median;
    context.metric("tokens_per_second", "1/s", measured.tokens * context.world_size() / median);
    context.metric("loss", "1", run->workload->loss());
    context.metric("parameters", "1", measured.parameters);
    run->phases.tell(context, seconds[0].size());
  };
  return made;
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const FsdpWorkloadOptions options = options_of(context.request(), rung);
  const MeasuredFsdp measured = parallel::measured_fsdp(options, rung, context.request().seed);
  run_on_ranks(context, measured, [&](comm::Communicator& ranks, device::Stream stream) {
    return started(measured, options.step.config, ranks, stream);
  });
}

double memory(const Params& params, std::string_view implementation) {
  const auto ranks = params.integer("world_size");
  train::WorkloadOptions options = train::workload_from(params, train::find_rung(implementation));
  options.batch = ceil_div(options.batch, ranks);  // of the rank with most
  return parallel::fsdp_memory(options, static_cast<int>(ranks), sharding_of(params)).total();
}

registry::Values texts(const std::vector<std::string>& words) {
  registry::Values values;
  for (const std::string& word : words) values.push_back(text(word));
  return values;
}

}  // namespace

registry::Builder fsdp_experiment(std::string id, const std::vector<std::string>& models) {
  return registry::experiment(std::move(id))
      .tags({"communication", "model"})
      .protocol("cs336")
      .axes(registry::axes_of(train::param_list(),
                              {{"model", texts(models)}, {"context", {number(128)}}, {"precision", {text("fp32")}}}))
      .closed_axis("granularity", {text("layer"), text("block")},
                   "what is gathered together: what one product reads, or the matrices of a block", {})
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
      .preset("paper", {{"model", texts(models)},
                        {"batch", {number(8)}},
                        {"context", {number(512)}},
                        {"precision", {text("fp32"), text("bf16_fused")}},
                        {"impl", {text("fused")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .refuses(train::refusal_by_axes)
      .skip_if("a recorded graph has no place for its gathers: full sharding runs without one",
               [](const Params&, std::string_view implementation) { return implementation == "graph"; })
      .metric("time", "s", "median of a whole step; of the slowest rank at each (rank -1)")
      .metric("forward", "s", "of the step's phases; with the loss")
      .metric("backward", "s", "from there to the last gradient")
      .metric("update", "s", "from there to the end: what is scattered still, norm and optimizer")
      .metric("gathering", "s", "sum over gathers of the time from start to end")
      .metric("exposed_forward", "s", "sum over gathers of the forward pass of the time that computing waited for them")
      .metric("exposed_backward", "s", "and of the backward pass")
      .metric("state_bytes", "B", "weights, gradients and moments that a rank holds, with padding")
      .metric("formula_bytes", "B", "what the formula has for them, rows of zeros and all")
      .metric("padding_bytes", "B", "of state_bytes: what lies between tensors so that they are aligned")
      .metric("slot_bytes", "B", "for weights that are whole and gradients on their way")
      .metric("gathered_bytes", "B", "that a step gathers, whole")
      .metric("tokens_per_second", "1/s", "of all ranks, over this rank's median")
      .metric("parameters", "1", "of the model")
      .metric("loss", "1", "of the last step, over the rows of all ranks")
      .memory(memory)
      .oom_is_an_answer()
      .runs(run_case);
}

}  // namespace syslab
