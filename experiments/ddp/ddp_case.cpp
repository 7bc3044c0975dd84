#include "experiments/ddp/ddp_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/contains.hpp"
#include "experiments/ddp/certificate_law.hpp"
#include "experiments/ddp/own_ranks.hpp"
#include "experiments/ddp/timed_class.hpp"
#include "parallel/rank_memory.hpp"
#include "registry/rank_training.hpp"
#include "registry/values.hpp"
#include "train/ladder.hpp"
#include "trials/measured_data_parallel.hpp"
#include "trials/phased_steps.hpp"
#include "trials/rank_training.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/rank_training_case.hpp"
#include "worker/wire/tell_rung.hpp"

namespace syslab {
namespace {

using parallel::DataParallelWorkload;
using parallel::DataParallelWorkloadOptions;
using parallel::MeasuredDataParallel;
using registry::Need;
using registry::number;
using registry::text;
using registry::texts;

constexpr const char* kNone = "none";
constexpr const char* kDdpBuckets = "bucket_mb";

// The dtype in which gradients are sent, if they are; nothing: their own.
std::optional<DType> wire_of(const Params& params) {
  return params.text("strategy") == kNone ? std::nullopt : parallel::wire_of(params);
}

DataParallelWorkloadOptions options_of(const Params& params, int ranks, const train::Rung& rung) {
  DataParallelWorkloadOptions options;
  options.step = parallel::rank_workload(params, rung, ranks);
  const std::string strategy = params.text("strategy");
  options.communicates = strategy != kNone;
  options.sync.strategy = options.communicates ? parallel::parse_strategy(strategy) : parallel::Strategy::flat_view;
  options.sync.timing = options.communicates && ranks > 1;
  options.sync.wire = wire_of(params);
  if (params.has(kDdpBuckets) && options.sync.strategy == parallel::Strategy::bucketed) {
    options.sync.bucket_mb = {static_cast<double>(params.integer(kDdpBuckets))};
  }
  return options;
}

// What is stored of a step, in seconds from its beginning.
struct DdpStep {
  double forward = 0, backward_end = 0, communication_end = 0, end = 0, busy = 0;
  std::optional<parallel::BucketTimeline> timeline;

  double exposed() const { return communication_end - backward_end; }
};
using DdpSteps = parallel::PhasedSteps<DataParallelWorkload, DdpStep>;

// The times of the computing stream and, if gradients are sent, of the communication stream.
DdpStep ddp_step_ends(DataParallelWorkload& run, const PhaseEnds& ends, const device::Event& begin) {
  DdpStep one{.forward = ends.forward, .backward_end = ends.backward, .end = ends.update};
  one.communication_end = one.backward_end;
  if (run.step().sync().options().timing) {
    one.timeline = run.step().sync().timeline(begin);
    one.busy = one.timeline->busy().count();
    one.backward_end = one.timeline->backward_end().count();
    one.communication_end = std::max(one.timeline->end().count(), one.backward_end);
  }
  return one;
}

void draw(worker::CaseContext& context, const DdpStep& step) {
  worker::emit_span(context, "compute", "forward", "phase", 0, step.forward);
  worker::emit_span(context, "compute", "backward", "phase", step.forward, step.backward_end);
  worker::emit_span(context, "compute", "update", "phase", step.communication_end, step.end);
  if (!step.timeline) return;
  for (std::size_t i = 0; i < step.timeline->buckets.size(); ++i) {
    const parallel::BucketTimes& bucket = step.timeline->buckets[i];
    worker::emit_span(context, "communication", fmt::format("bucket {}", i), "collective", bucket.start.count(),
                      bucket.end.count());
  }
}

void tell_phases(worker::CaseContext& context, std::span<const DdpStep> steps) {
  if (steps.empty()) return;
  worker::emit_series(context, "forward", steps, [](const DdpStep& one) { return one.forward; });
  worker::emit_series(context, "backward", steps, [](const DdpStep& one) { return one.backward_end - one.forward; });
  worker::emit_series(context, "update", steps,
                      [](const DdpStep& one) { return std::max(one.end - one.communication_end, 0.0); });
  if (steps.back().timeline) {
    worker::emit_series(context, "communicating", steps, [](const DdpStep& one) { return one.busy; });
    worker::emit_series(context, "exposed", steps, [](const DdpStep& one) { return one.exposed(); });
    double hidden = 0, busy = 0;
    for (const DdpStep& one : steps) {
      hidden += std::max(one.busy - one.exposed(), 0.0);
      busy += one.busy;
    }
    context.metric("overlapped", "1", busy > 0 ? hidden / busy : 0);
  }
  draw(context, steps.back());
}

worker::RankRun started(const MeasuredDataParallel& measured, comm::Communicator& ranks, device::Stream stream) {
  const auto steps = std::make_shared<DdpSteps>(measured.start(ranks, stream), stream, ddp_step_ends);
  worker::RankRun made;
  made.owner = steps;
  made.series = {worker::kept_steps(
      steps->workload(), [steps] { steps->step(); }, [steps] { steps->keep(); })};
  made.tell = [steps, &measured](worker::CaseContext& context, const std::vector<std::vector<double>>& seconds) {
    steps->keep();
    DataParallelWorkload& run = *steps->workload();
    run.step().check();  // the same weights on all ranks, and every byte that the plan says
    worker::tell_training(context, measured.tokens, measured.parameters, run.loss(), seconds[0]);
    const model::Kernels& kernels = run.model().kernels();
    worker::tell_rung(context, "attention", kernels.attention.name, kernels.attention_because);
    const bool travels = run.step().sync().options().timing;
    context.metric("gradient_bytes", "B", travels ? measured.gradient_bytes : 0);
    context.metric("buckets", "1", travels ? run.step().sync().schedule().size() : 0);
    if (const auto& forecast = run.forecast()) {
      context.metric("forecast_exposed", "s", forecast->timeline.exposed().count());
      context.metric("bound_exposed", "s", (forecast->bound - forecast->timeline.backward_end()).count());
    }
    tell_phases(context, worker::last_of(steps->kept(), seconds[0].size()));
  };
  return made;
}

void run_ddp_experiment(worker::CaseContext& context) {
  const worker::CaseRequest& request = context.request();
  const train::Rung& rung = train::find_rung(request.implementation);
  const MeasuredDataParallel measured =
      parallel::measured_data_parallel(options_of(request.params, request.world_size, rung), rung, request.seed);
  worker::run_rank_training(context, measured.device, measured.refusal, [&](worker::RankCase& made) {
    const std::shared_ptr<comm::Communicator> ranks = parallel::in_step(request, made);
    made.check = [&measured, ranks](device::Stream stream) { return measured.check(*ranks, stream); };
    made.start = [&measured, ranks](device::Stream stream) { return started(measured, *ranks, stream); };
  });
}

double ddp_memory(const Params& params, std::string_view implementation) {
  if (trains_in_python(implementation)) return timed_class_memory(params);
  const auto ranks = static_cast<int>(params.integer("world_size"));
  const DataParallelWorkloadOptions options = options_of(params, ranks, train::find_rung(implementation));
  return parallel::data_parallel_memory(options.step, ranks, options.sharding, options.sync).total() +
         parallel::backend_bytes(params, ranks);
}

std::optional<std::string> ddp_refusal(const Params& params, std::string_view implementation) {
  if (trains_in_python(implementation)) return std::nullopt;
  if (auto why = parallel::rank_training_cases().refusal(params, implementation)) return why;
  return parallel::refusal_on_wire(wire_of(params), model::parse_precision(params.text("precision")));
}

std::vector<parallel::Strategy> strategies_of(data_parallel::Strategy strategy) {
  using data_parallel::Strategy;
  switch (strategy) {
    case Strategy::naive:
      return {parallel::Strategy::naive};
    case Strategy::flat:
      return {parallel::Strategy::flat_copy, parallel::Strategy::flat_view};
    case Strategy::individual:
      return {parallel::Strategy::overlap};
    case Strategy::bucketed:
      return {parallel::Strategy::bucketed, parallel::Strategy::planned};
  }
  return {};
}

std::vector<LawInfo> laws_of(data_parallel::Strategy strategy) {
  std::vector<LawInfo> laws = data_parallel::law_list(strategy);
  laws.push_back(certificate_law_info());
  return laws;
}

void run_ddp_law(worker::CaseContext& context, data_parallel::Strategy strategy) {
  if (context.request().mine) {
    worker::require_class_for_ranks(context);
    return worker::run_law(context, data_parallel::laws(strategy, context.rank_channel()));
  }
  std::vector<check::Law> ours = data_parallel::laws(strategy, own_ranks(train_replicated(strategy)));
  ours.push_back(certificate_law({strategies_of(strategy)}));
  worker::run_law(context, ours);
}

// Which problem wants which of an experiment's steps. A step that several problems compare with is timed once, by the
// first of them; the tables of all find it (db/views/v_data_parallel.sql).
struct Answer {
  std::string problem;
  std::vector<std::string> strategies;
};

std::vector<Answer> answers_of(const std::string& experiment) {
  static const std::string kNaive = "naive_ddp_benchmarking", kFlat = "minimal_ddp_flat_benchmarking",
                           kOverlap = "ddp_overlap_individual_parameters_benchmarking";
  if (experiment == kNaive) return {{kNaive, {kNone, "naive"}}, {kFlat, {"naive"}}, {kOverlap, {kNone, "naive"}}};
  if (experiment == kFlat) return {{kFlat, {"flat_copy", "flat_view"}}, {kOverlap, {"flat_copy"}}};
  if (experiment == kOverlap) return {{kOverlap, {"overlap"}}};
  return {{experiment, {kNone, "overlap", "bucketed", "planned"}}};
}

std::vector<registry::Evidence> evidence_of_times(const std::string& experiment,
                                                  const std::vector<std::string>& models) {
  std::vector<registry::Evidence> evidence;
  for (const registry::HandoutStep& step : registry::handout_steps()) {
    if (!contains(models, step.model)) continue;
    registry::Preset grid = step.grid();
    for (const Answer& one : answers_of(experiment)) {
      grid["strategy"] = texts(one.strategies);
      grid["precision"] = {text("fp32")};
      evidence.push_back({.handout = step.handout, .problem = one.problem, .grid = grid});
      grid["precision"] = {text("fp32"), text("bf16_amp")};
      evidence.push_back({.need = Need::asked, .handout = step.handout, .problem = one.problem, .grid = grid});
    }
  }
  evidence.push_back({.need = Need::nice, .preset = "paper"});
  evidence.push_back({.preset = "laptop", .in_small = true});
  return evidence;
}

std::vector<std::string> strategies_besides(const std::vector<std::string>& declared) {
  std::vector<std::string> others{kNone};
  for (const parallel::StrategyInfo& one : parallel::strategies()) others.emplace_back(to_string(one.strategy));
  std::erase_if(others, [&](const std::string& word) { return contains(declared, word); });
  return others;
}

std::vector<registry::Metric> ddp_metrics() {
  return {{"communicating", "s", "sum over buckets of the time from the start to the end of their all-reduce"},
          {"exposed", "s", "from the last gradient to the end of the last all-reduce: what the step is longer by"},
          {"forward", "s", "of the step's phases; with the loss"},
          {"backward", "s", "from there to the last gradient"},
          {"update", "s", "from the end of the last all-reduce to the end of the step: norm and optimizer"},
          {"overlapped", "1", "part of the communication that was under the backward pass"},
          {"buckets", "1", "all-reduces of a step"},
          {"gradient_bytes", "B", "that a rank puts into them"},
          {"forecast_exposed", "s", "of `planned`: what the plan should expose, told before the first step"},
          {"bound_exposed", "s", "of `planned`: what a link as fast must expose at least"}};
}

void add_limits(registry::Builder& made, const std::vector<std::int64_t>& bucket_mb) {
  Values values{number(0)};
  for (const std::int64_t one : bucket_mb) values.push_back(number(one));
  made.axis(kDdpBuckets, values, "limit of a bucket of strategy bucketed, in 2^20 bytes; 0 for the others")
      // ddp_bucketed_benchmarking/tables/scaling.sql recognises both reasons by their first words.
      .skip_if("a limit of buckets is of strategy bucketed alone; the others take bucket_mb=0",
               [](const Params& params, std::string_view) {
                 return params.text("strategy") != "bucketed" && params.integer(kDdpBuckets) != 0;
               })
      .skip_if("a limit of buckets of at least 1 (2^20 bytes) is wanted by strategy bucketed",
               [](const Params& params, std::string_view) {
                 return params.text("strategy") == "bucketed" && params.integer(kDdpBuckets) < 1;
               });
}

}  // namespace

void take_classes(registry::Builder& experiment, data_parallel::Strategy strategy, std::string timed_by) {
  experiment.laws(laws_of(strategy))
      .accepts_mine_for_laws(std::move(timed_by))
      .runs([strategy](worker::CaseContext& context) {
        context.is_law() ? run_ddp_law(context, strategy) : run_ddp_experiment(context);
      });
}

void time_classes(registry::Builder& experiment, data_parallel::Strategy strategy, const std::string& word,
                  bool with_laws) {
  const TimedClass timed{.way = "data_parallel",
                         .axis = "strategy",
                         .of_class = word,
                         .ours = {{"none", "none"},
                                  {"naive", "naive"},
                                  {"flat_copy", "flat_copy"},
                                  {"flat_view", "flat_view"},
                                  {"overlap", "overlap"},
                                  {"bucketed", "bucketed"},
                                  {"planned", "planned"}},
                         .laws = [strategy](std::shared_ptr<CallChannel> ranks) {
                           return data_parallel::laws(strategy, std::move(ranks));
                         }};
  time_classes(experiment, timed);
  if (with_laws) experiment.laws(laws_of(strategy));
  experiment.runs([strategy, timed](worker::CaseContext& context) {
    if (context.is_law()) return run_ddp_law(context, strategy);
    trains_in_python(context.request().implementation) ? run_timed_class(context, timed) : run_ddp_experiment(context);
  });
}

registry::Builder ddp_experiment(const std::string& id, const std::vector<std::string>& strategies,
                                 const std::vector<std::string>& models, const std::vector<std::int64_t>& bucket_mb) {
  registry::Builder made = registry::rank_training_experiment(
      id, parallel::rank_training_cases(), models,
      "a recorded graph has no place for its gradients' events: several ranks run without one");
  made.closed_axis("strategy", texts(strategies),
                   "how gradients are reduced; none: not at all, which is the step without communication",
                   texts(strategies_besides(strategies)))
      .metrics(ddp_metrics())
      .memory(ddp_memory)
      .runs(run_ddp_experiment);
  registry::add_training_metrics(made);
  // The proof of a strategy needs one model, one size, and no rounding.
  if (contains(strategies, kNone)) {
    registry::add_wire_axis(made);
    made.refuses(ddp_refusal);
    made.preset("paper", {{"model", texts(models)},
                          {"batch", {number(8)}},
                          {"context", {number(128), number(512)}},
                          {"precision", {text("fp32"), text("bf16_amp")}},
                          {"impl", {text("fused")}}});
    made.all_evidence(evidence_of_times(id, models));
  } else {
    made.preset("paper", {{"batch", {number(8)}}, {"impl", {text("fused")}}});
    // Ranks of the CPU prove it as well.
    made.all_evidence(
        {{.preset = "laptop"}, {.preset = "laptop", .laws = true}, {.need = Need::nice, .preset = "paper"}});
  }
  if (!bucket_mb.empty()) add_limits(made, bucket_mb);
  return made;
}

}  // namespace syslab
