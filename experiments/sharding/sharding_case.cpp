#include "experiments/sharding/sharding_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "device/memory_log.hpp"
#include "device/stream.hpp"
#include "experiments/ddp/certificate_law.hpp"
#include "experiments/ddp/own_ranks.hpp"
#include "experiments/ddp/timed_class.hpp"
#include "parallel/rank_memory.hpp"
#include "parallel/state_memory.hpp"
#include "property_tests/data_parallel/laws.hpp"
#include "registry/rank_training.hpp"
#include "registry/values.hpp"
#include "trials/measured_data_parallel.hpp"
#include "trials/phased_steps.hpp"
#include "trials/rank_training.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/rank_training_case.hpp"
#include "worker/wire/tell_rung.hpp"

namespace syslab {
namespace {

using device::MemoryCategory;
using parallel::DataParallelWorkload;
using parallel::MeasuredDataParallel;
using parallel::Sharding;
using registry::Need;
using registry::number;
using registry::text;
using registry::texts;

constexpr const char* kShardingBuckets = "bucket_mb";
constexpr const char* kUpdates = "updates";
constexpr const char* kInTurn = "in_turn";

// The axis counts whole 2^20 bytes, of which a bucket may hold one at least.
void expect_limit(const Params& params) {
  const std::int64_t limit = params.integer(kShardingBuckets);
  if (limit < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("bucket_mb is {}; a whole number of 2^20 bytes, at least 1, is wanted", limit));
  }
  parallel::bucket_mb_bytes(static_cast<double>(limit));
}

parallel::SyncOptions sync_of(const Params& params) {
  return {.strategy = parallel::Strategy::bucketed,
          .bucket_mb = {static_cast<double>(params.integer(kShardingBuckets))},
          .schedule = {},
          .wire = parallel::wire_of(params)};
}

Sharding sharding_of(const Params& params) {
  const std::string asked = params.text("sharding");
  for (const Sharding one : parallel::kShardings) {
    if (one != Sharding::zero3 && asked == to_string(one)) return one;
  }
  throw Error(ErrorKind::usage, fmt::format("no sharding '{}': none, optimizer, zero1 or zero2", asked));
}

// Live bytes by category.
struct Live {
  static constexpr std::array<const char*, 5> kNames{"parameters", "gradients", "optimizer", "activations", "others"};
  std::array<double, 5> of{};

  double total() const {
    double sum = 0;
    for (const double one : of) sum += one;
    return sum;
  }
  void add(const device::MemoryEvent& event) {
    if (event.category == MemoryCategory::library) return;  // no caller's
    const std::size_t at = event.category == MemoryCategory::parameter    ? 0
                           : event.category == MemoryCategory::gradient   ? 1
                           : event.category == MemoryCategory::optimizer  ? 2
                           : event.category == MemoryCategory::activation ? 3
                                                                          : 4;
    of.at(at) += static_cast<double>(event.delta);
  }
};

// The account of a run from its first allocation on.
class Account {
 public:
  explicit Account(device::Place place) : place_(place), log_(device::MemoryLog::of(place)) { log_.clear(); }

  // Everything up to now; `highest`: at the peak since the last call.
  struct Look {
    Live now, highest;
  };
  Look look() {
    device::synchronize(place_);
    if (log_.dropped_events() > 0) throw Error(ErrorKind::internal, "more allocations than the account has room for");
    Live highest = live_;
    for (const device::MemoryEvent& event : log_.events()) {
      live_.add(event);
      if (live_.total() > highest.total()) highest = live_;
    }
    log_.clear();
    return {live_, highest};
  }

 private:
  device::Place place_;
  device::MemoryLog& log_;
  Live live_;
};

// What ranks send of gradients and weights: by the formula of each operation, on average over the ranks.
struct Travelled {
  double bytes = 0, calls = 0;

  static Travelled of(const comm::Communicator& ranks) {
    Travelled made;
    for (const char* kind : {"gradient", "parameter"}) {
      const comm::Counters::Row row = ranks.counters().total(kind);
      made.bytes += row.wire_bytes;
      made.calls += static_cast<double>(row.calls);
    }
    return made;
  }
};

// The phases of a step, by events in the stream that computes.
PhaseEnds sharding_step_ends(DataParallelWorkload&, const PhaseEnds& ends, const device::Event&) { return ends; }
using ShardingSteps = parallel::PhasedSteps<DataParallelWorkload, PhaseEnds>;

struct ShardingRun {
  std::shared_ptr<DataParallelWorkload> workload;
  Live after_init, before_update, after_update, peak;
  Travelled a_step;
};

// Sets a run up and takes two steps. The second is measured, when every library has allocated what it keeps.
std::shared_ptr<ShardingRun> set_up(const MeasuredDataParallel& measured, comm::Communicator& ranks,
                                    device::Stream stream) {
  auto run = std::make_shared<ShardingRun>();
  Account account(device::place_of(stream));
  run->workload = measured.start(ranks, stream);
  run->after_init = account.look().now;
  run->workload->refresh();
  run->workload->run();
  account.look();

  const Travelled before = Travelled::of(ranks);
  run->workload->refresh();
  run->workload->forward();
  run->workload->backward();
  const Account::Look passed = account.look();
  run->workload->update();
  const Account::Look updated = account.look();
  run->before_update = passed.now;
  run->after_update = updated.now;
  run->peak = updated.highest.total() > passed.highest.total() ? updated.highest : passed.highest;
  const Travelled after = Travelled::of(ranks);
  run->a_step = {after.bytes - before.bytes, after.calls - before.calls};
  return run;
}

void tell_memory(worker::CaseContext& context, const ShardingRun& run) {
  const auto tell = [&](const std::string& moment, const Live& live) {
    context.metric(moment, "B", live.total());
    for (std::size_t i = 0; i < live.of.size(); ++i) {
      context.metric(moment + "_" + Live::kNames.at(i), "B", live.of.at(i));
    }
  };
  tell("after_init", run.after_init);
  tell("before_update", run.before_update);
  tell("after_update", run.after_update);
  tell("peak", run.peak);
}

worker::RankRun started(const MeasuredDataParallel& measured, Sharding sharding, comm::Communicator& ranks,
                        device::Stream stream) {
  const std::shared_ptr<ShardingRun> run = set_up(measured, ranks, stream);
  const auto steps = std::make_shared<ShardingSteps>(run->workload, stream, sharding_step_ends);
  worker::RankRun made;
  made.owner = steps;
  made.series = {worker::kept_steps(
      steps->workload(), [steps] { steps->step(); }, [steps] { steps->keep(); })};
  made.tell = [run, steps, &measured, sharding](worker::CaseContext& context,
                                                const std::vector<std::vector<double>>& seconds) {
    steps->keep();
    parallel::DataParallelStep& step = run->workload->step();
    step.check();  // the same weights on all ranks, and every byte that the formulas say
    worker::tell_training(context, measured.tokens, measured.parameters, run->workload->loss(), seconds[0]);
    const model::Kernels& kernels = run->workload->model().kernels();
    worker::tell_rung(context, "attention", kernels.attention.name, kernels.attention_because);
    worker::emit_phases(context, worker::last_of(steps->kept(), seconds[0].size()));
    tell_memory(context, *run);
    const parallel::HeldBytes held = step.held();
    context.metric("held_state", "B", static_cast<double>(held.total() - held.copy));
    context.metric("held_moments", "B", static_cast<double>(held.moments));
    context.metric("held_gradients", "B", static_cast<double>(held.gradients));
    const std::int64_t ranks_of_case = context.world_size();
    const parallel::StateBytes formula =
        parallel::state_bytes(measured.parameters, ranks_of_case, sharding, parallel::state_in(measured.weight_width));
    context.metric("formula_state", "B", formula.total());
    context.metric("formula_moments", "B", formula.moments);
    const model::ParameterLayout& layout =
        (run->workload->zero() != nullptr ? run->workload->zero()->arena() : run->workload->model().parameters())
            .layout();
    context.metric("padding", "1", static_cast<double>(layout.elements() - layout.parameters()));
    context.metric("sent", "B", run->a_step.bytes);
    context.metric("calls", "1", run->a_step.calls);
    context.metric(
        "formula_sent", "B",
        parallel::step_traffic(measured.gradient_bytes, measured.weight_bytes, ranks_of_case, sharding).sent_bytes);
  };
  return made;
}

void run_sharding_experiment(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  parallel::DataParallelWorkloadOptions options;
  options.step = parallel::rank_workload(context.params(), rung, context.world_size());
  options.sync = sync_of(context.params());
  options.sharding = sharding_of(context.params());
  options.in_turn = context.params().text(kUpdates) == kInTurn;
  const MeasuredDataParallel measured = parallel::measured_data_parallel(options, rung, context.request().seed);
  worker::run_rank_training(context, measured.device, measured.refusal, [&](worker::RankCase& made) {
    const std::shared_ptr<comm::Communicator> ranks = parallel::in_step(context.request(), made);
    made.check = [&measured, ranks](device::Stream stream) { return measured.check(*ranks, stream); };
    made.start = [&, ranks](device::Stream stream) { return started(measured, options.sharding, *ranks, stream); };
  });
}

double sharding_memory(const Params& params, std::string_view implementation) {
  if (trains_in_python(implementation)) return timed_class_memory(params);
  const auto ranks = static_cast<int>(params.integer("world_size"));
  return parallel::data_parallel_memory(parallel::rank_workload(params, train::find_rung(implementation), ranks), ranks,
                                        sharding_of(params), sync_of(params))
             .total() +
         parallel::backend_bytes(params, ranks);
}

std::vector<std::string> shardings_besides(const std::vector<std::string>& declared) {
  std::vector<std::string> others{"none", "optimizer", "zero1", "zero2"};
  std::erase_if(others, [&](const std::string& word) { return contains(declared, word); });
  return others;
}

std::vector<registry::Metric> sharding_metrics() {
  return {{"held_state", "B", "weights, gradients and moments of this rank, slots and padding too; no copies"},
          {"held_moments", "B", "of that, the optimizer's moments"},
          {"held_gradients", "B", "of that, gradients, with the slots that they pass through"},
          {"formula_state", "B", "what the formula says that a rank holds on average"},
          {"formula_moments", "B", "of that, the moments"},
          {"padding", "1", "elements of the arena that are nobody's"},
          {"sent", "B", "of gradients and weights in a step, by the formulas of the operations that were counted"},
          {"calls", "1", "operations of a step on gradients and weights"},
          {"formula_sent", "B", "what the formula of the whole step says"}};
}

// Those that tell_memory() emits.
std::vector<registry::Metric> memory_metrics() {
  std::vector<registry::Metric> metrics;
  for (const auto& [moment, when] :
       {std::pair{"after_init", "when the model, its gradients and its moments are there, before the first step"},
        {"before_update", "behind the backward pass of the second step"},
        {"after_update", "behind its update"},
        {"peak", "at the highest moment of that step"}}) {
    metrics.push_back({moment, "B", fmt::format("live bytes {}", when)});
    for (const char* one : Live::kNames) {
      metrics.push_back({fmt::format("{}_{}", moment, one), "B", fmt::format("of them, {}", one)});
    }
  }
  return metrics;
}

// A proof, for which ranks of the CPU will do.
std::vector<registry::Evidence> evidence_of_a_proof() {
  return {{.preset = "laptop"},
          {.preset = "laptop", .laws = true},
          // What its first stage sends shows on any ranks.
          {.problem = "optimizer_state_sharding_accounting", .parts = {"c"}, .preset = "laptop"},
          {.need = Need::nice, .preset = "paper"}};
}

std::vector<registry::Evidence> evidence_of_measurements() {
  std::vector<registry::Evidence> evidence;
  for (const registry::HandoutStep& step : registry::handout_steps()) {
    registry::Preset grid = step.grid();
    grid["sharding"] = {text("none"), text("optimizer")};
    evidence.push_back({.handout = step.handout, .parts = {"a", "b"}, .grid = grid});
    grid["sharding"] = {text("none"), text("optimizer"), text("zero1")};
    evidence.push_back({.need = Need::asked, .handout = step.handout, .parts = {"c"}, .grid = grid});
    evidence.push_back({.need = Need::asked, .handout = step.handout, .grid = step.grid()});
  }
  evidence.push_back({.need = Need::nice, .preset = "paper"});
  evidence.push_back({.preset = "laptop", .in_small = true});
  return evidence;
}

std::optional<std::string> sharding_refusal(const Params& params, std::string_view implementation) {
  return trains_in_python(implementation) ? std::nullopt : parallel::refusal_with_wire(params, implementation);
}

}  // namespace

void time_classes(registry::Builder& experiment) {
  const TimedClass timed{.way = "sharded_optimizer",
                         .axis = "sharding",
                         .of_class = "optimizer",
                         .ours = {{"none", "whole"}, {"optimizer", "optimizer"}},
                         .laws = data_parallel::sharded::laws};
  time_classes(experiment, timed);
  experiment.runs([timed](worker::CaseContext& context) {
    trains_in_python(context.request().implementation) ? run_timed_class(context, timed)
                                                       : run_sharding_experiment(context);
  });
}

void take_classes(registry::Builder& experiment) {
  std::vector<LawInfo> laws = data_parallel::sharded::law_list();
  laws.push_back(certificate_law_info());
  experiment.laws(std::move(laws))
      .accepts_mine_for_laws("optimizer_state_sharding_accounting")
      .runs([](worker::CaseContext& context) {
        if (!context.request().mine && context.is_law()) {
          using parallel::Sharding;
          std::vector<check::Law> ours = data_parallel::sharded::laws_of_ours(own_ranks(train_sharded_optimizer()));
          ours.push_back(certificate_law({{parallel::Strategy::naive, parallel::Strategy::bucketed},
                                          {Sharding::optimizer, Sharding::zero1, Sharding::zero2}}));
          return worker::run_law(context, ours);
        }
        if (!context.request().mine) return run_sharding_experiment(context);
        worker::require_class_for_ranks(context);
        worker::run_law(context, data_parallel::sharded::laws(context.rank_channel()));
      });
}

registry::Builder sharding_experiment(std::string id, const std::vector<std::string>& shardings,
                                      const std::vector<std::string>& models) {
  registry::Builder made = registry::rank_training_experiment(
      std::move(id), parallel::rank_training_cases(), models,
      "a recorded graph has no place for its gradients' events: several ranks run without one");
  registry::add_training_metrics(made);
  registry::add_phase_metrics(made);
  registry::add_wire_axis(made);
  made.tags({"memory"})
      .closed_axis("sharding", texts(shardings),
                   "whose the optimizer's state is: everybody's (none), whole parameters' owners' (optimizer), flat "
                   "ranges' (zero1), gradients' too (zero2)",
                   texts(shardings_besides(shardings)))
      .closed_axis(
          kUpdates, {text("at_end")},
          "when zero1 and zero2 update a slice: behind the backward pass, or in_turn, as soon as its gradients "
          "are there",
          {text(kInTurn)})
      .skip_if("updates in turn are of zero1 and zero2, whose slices nobody else waits for: take updates=at_end",
               [](const Params& params, std::string_view) {
                 const std::string sharding = params.text("sharding");
                 return params.text(kUpdates) == kInTurn && sharding != "zero1" && sharding != "zero2";
               })
      .axis(kShardingBuckets, {number(25)},
            "limit of the buckets that gradients are reduced in, and of zero1 and zero2 weights gathered in; in 2^20 "
            "bytes")
      .expects(expect_limit)
      .refuses(sharding_refusal)
      .preset("paper", {{"batch", {number(8)}}, {"context", {number(128), number(512)}}, {"impl", {text("fused")}}})
      .metrics(sharding_metrics())
      .metrics(memory_metrics())
      .all_evidence(contains(shardings, "none") ? evidence_of_measurements() : evidence_of_a_proof())
      .memory(sharding_memory)
      .runs(run_sharding_experiment);
  return made;
}

}  // namespace syslab
