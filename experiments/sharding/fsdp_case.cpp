#include "experiments/sharding/fsdp_case.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "device/memory_log.hpp"
#include "experiments/ddp/own_ranks.hpp"
#include "experiments/ddp/timed_class.hpp"
#include "parallel/fsdp/state.hpp"
#include "parallel/rank_memory.hpp"
#include "property_tests/data_parallel/laws.hpp"
#include "registry/rank_training.hpp"
#include "registry/values.hpp"
#include "trials/measured_fsdp.hpp"
#include "trials/phased_steps.hpp"
#include "trials/rank_training.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/rank_training_case.hpp"
#include "worker/judged/half_products.hpp"
#include "worker/wire/tell_rung.hpp"

namespace syslab {
namespace {

using parallel::FsdpWorkload;
using parallel::FsdpWorkloadOptions;
using parallel::GatherTimes;
using parallel::MeasuredFsdp;
using registry::number;
using registry::text;

FsdpWorkloadOptions options_of(const Params& params, const FsdpCase& how, std::int64_t ranks) {
  FsdpWorkloadOptions options{.step = parallel::rank_workload(params, how.rung, ranks),
                              .sharding = parallel::fsdp_step_options(how.granularity)};
  options.step.model.recompute = how.recompute;
  options.sharding.fsdp.scatter.wire = parallel::wire_of(params);
  return options;
}

FsdpCase case_of(const Params& params, std::string_view implementation) {
  return {.rung = train::find_rung(implementation),
          .granularity = parallel::parse_granularity(params.text("granularity"))};
}

double forecast(const FsdpWorkloadOptions& options, int ranks) {
  return parallel::fsdp_memory(options.step, ranks, options.sharding).total();
}

// What is stored of a step, in seconds from its beginning.
struct FsdpStep {
  PhaseEnds ends;
  double exposed_forward = 0, exposed_backward = 0, gathering = 0;
  std::vector<GatherTimes> gathers;
};
using FsdpSteps = parallel::PhasedSteps<FsdpWorkload, FsdpStep>;

FsdpStep fsdp_step_ends(FsdpWorkload& run, const PhaseEnds& ends, const device::Event& begin) {
  FsdpStep made{.ends = ends, .gathers = run.step().fsdp().gathered().times(begin)};
  for (const GatherTimes& one : made.gathers) {
    (one.forward ? made.exposed_forward : made.exposed_backward) += one.exposed().count();
    made.gathering += (one.end - one.start).count();
  }
  return made;
}

// The last step as spans: its phases, and for each gather when it ran and how long computing waited for it.
void draw(worker::CaseContext& context, const FsdpWorkload& run, const FsdpStep& step) {
  worker::emit_span(context, "compute", "forward", "phase", 0, step.ends.forward);
  worker::emit_span(context, "compute", "backward", "phase", step.ends.forward, step.ends.backward);
  worker::emit_span(context, "compute", "update", "phase", step.ends.backward, step.ends.update);
  for (const GatherTimes& one : step.gathers) {
    const std::string name = run.unit_name(one.unit), pass = one.forward ? "forward" : "backward";
    worker::emit_span(context, "gather", name, pass, one.start.count(), one.end.count());
    worker::emit_span(context, "wait", name, pass, one.needed.count(), one.first_use.count());
  }
}

void tell_phases(worker::CaseContext& context, const FsdpWorkload& run, std::span<const FsdpStep> steps) {
  if (steps.empty()) return;
  std::vector<PhaseEnds> ends;
  for (const FsdpStep& one : steps) ends.push_back(one.ends);
  worker::emit_phases(context, ends);
  worker::emit_series(context, "gathering", steps, [](const FsdpStep& one) { return one.gathering; });
  worker::emit_series(context, "exposed_forward", steps, [](const FsdpStep& one) { return one.exposed_forward; });
  worker::emit_series(context, "exposed_backward", steps, [](const FsdpStep& one) { return one.exposed_backward; });
  draw(context, run, steps.back());
}

void tell_bytes(worker::CaseContext& context, FsdpWorkload& run, const model::ModelConfig& config,
                std::int64_t weight_width) {
  const parallel::FsdpBytes held = run.step().bytes();
  const parallel::FsdpState formula =
      parallel::fsdp_state(config, context.world_size(), parallel::state_in(weight_width));
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

// The most memory that this rank has held since then, in the categories of its account.
class Highest {
 public:
  explicit Highest(device::Stream stream)
      : log_(&device::MemoryLog::of(device::place_of(stream))), before_(log_->live_bytes()) {
    log_->reset_peak();
  }
  double bytes() const { return static_cast<double>(log_->peak_bytes() - before_); }

 private:
  device::MemoryLog* log_;
  std::int64_t before_;
};

worker::RankRun started(const MeasuredFsdp& measured, const FsdpWorkloadOptions& options, comm::Communicator& ranks,
                        device::Stream stream) {
  const Highest highest(stream);
  const auto steps = std::make_shared<FsdpSteps>(measured.start(ranks, stream), stream, fsdp_step_ends);
  worker::RankRun made;
  made.owner = steps;
  made.series = {worker::kept_steps(
      steps->workload(), [steps] { steps->step(); }, [steps] { steps->keep(); })};
  made.tell = [steps, highest, &measured, &options](worker::CaseContext& context,
                                                    const std::vector<std::vector<double>>& seconds) {
    context.metric("peak_bytes", "B", highest.bytes());
    context.metric(
        "predicted_bytes", "B",
        forecast(options, context.world_size()) + parallel::backend_bytes(context.params(), context.world_size()));
    steps->keep();
    FsdpWorkload& run = *steps->workload();
    run.step().check();  // the same norms on all ranks, and every byte that the plan says
    tell_bytes(context, run, options.step.config, measured.weight_width);
    worker::tell_training(context, measured.tokens, measured.parameters, run.loss(), seconds[0]);
    const model::Kernels& kernels = run.step().model().kernels();
    worker::tell_rung(context, "attention", kernels.attention.name, kernels.attention_because);
    tell_phases(context, run, worker::last_of(steps->kept(), seconds[0].size()));
  };
  return made;
}

// Laws of a class that somebody handed in. One in fp16 is not searched where no right class could hold it.
std::vector<check::Law> laws_of_class(worker::CaseContext& context) {
  std::vector<check::Law> laws = data_parallel::fully_sharded::laws(context.rank_channel());
  for (check::Law& law : laws) {
    if (law.id != "fsdp.fp16" || context.request().device != DeviceKind::cpu) continue;
    law.search = [search = law.search](const check::LawRequest& request) {
      if (const std::optional<Lack> lacks = worker::lacks_half_products()) {
        check::LawResult none;
        none.message = lacks->text();
        none.lacks = lacks;
        return none;
      }
      return search(request);
    };
  }
  return laws;
}

void run_fsdp_experiment(worker::CaseContext& context) {
  run_fsdp_case(context, case_of(context.params(), context.request().implementation));
}

double fsdp_memory(const Params& params, std::string_view implementation) {
  if (trains_in_python(implementation)) return timed_class_memory(params);
  return fsdp_case_memory(params, case_of(params, implementation));
}

std::optional<std::string> fsdp_refusal(const Params& params, std::string_view implementation) {
  return trains_in_python(implementation) ? std::nullopt : parallel::refusal_with_wire(params, implementation);
}

}  // namespace

void run_fsdp_case(worker::CaseContext& context, const FsdpCase& how) {
  FsdpWorkloadOptions options = options_of(context.params(), how, context.world_size());
  options.sharding.fsdp.gather.timing = true;
  const MeasuredFsdp measured = parallel::measured_fsdp(options, how.rung, context.request().seed);
  worker::run_rank_training(context, measured.device, measured.refusal, [&](worker::RankCase& made) {
    const std::shared_ptr<comm::Communicator> ranks = parallel::in_step(context.request(), made);
    made.check = [&measured, ranks](device::Stream stream) { return measured.check(*ranks, stream); };
    made.start = [&, ranks](device::Stream stream) { return started(measured, options, *ranks, stream); };
  });
}

double fsdp_case_memory(const Params& params, const FsdpCase& how) {
  const auto ranks = static_cast<int>(params.integer("world_size"));
  return forecast(options_of(params, how, ranks), ranks) + parallel::backend_bytes(params, ranks);
}

void add_fsdp_metrics(registry::Builder& experiment) {
  registry::add_phase_metrics(experiment);
  experiment.metric("gathering", "s", "sum over gathers of the time from start to end")
      .metric("exposed_forward", "s", "sum over gathers of the forward pass of the time that computing waited for them")
      .metric("exposed_backward", "s", "and of the backward pass")
      .metric("state_bytes", "B", "weights, gradients and moments that a rank holds, with padding")
      .metric("formula_bytes", "B", "what the formula has for them, rows of zeros and all")
      .metric("padding_bytes", "B", "of state_bytes: what lies between tensors so that they are aligned")
      .metric("slot_bytes", "B", "for weights that are whole and gradients on their way")
      .metric("peak_bytes", "B", "most in use during a step, parameters and all")
      .metric("predicted_bytes", "B", "the same by arithmetic")
      .metric("gathered_bytes", "B", "that a step gathers, whole");
  registry::add_training_metrics(experiment);
}

void take_fully_sharded_classes(registry::Builder& experiment) {
  experiment.laws(data_parallel::fully_sharded::law_list())
      .accepts_mine_for_laws("fsdp_accounting")
      .runs([](worker::CaseContext& context) {
        if (!context.request().mine && context.is_law()) {
          return worker::run_law(context, data_parallel::fully_sharded::laws(own_ranks(train_fully_sharded())));
        }
        if (!context.request().mine) return run_fsdp_experiment(context);
        worker::require_class_for_ranks(context);
        worker::run_law(context, laws_of_class(context));
      });
}

void time_fully_sharded_classes(registry::Builder& experiment) {
  const TimedClass timed{.way = "fully_sharded",
                         .axis = "granularity",
                         .of_class = "layer",
                         .ours = {{"layer", "layer"}},
                         .has_torchs_own = false,
                         .laws = data_parallel::fully_sharded::laws};
  time_classes(experiment, timed);
  experiment.runs([timed](worker::CaseContext& context) {
    trains_in_python(context.request().implementation) ? run_timed_class(context, timed) : run_fsdp_experiment(context);
  });
}

registry::Builder fsdp_experiment(std::string id, const std::vector<std::string>& models) {
  registry::Builder made = registry::rank_training_experiment(
      std::move(id), parallel::rank_training_cases(), models,
      "a recorded graph has no place for its gathers: full sharding runs without one");
  made.closed_axis("granularity", {text("layer"), text("block")},
                   "what is gathered together: what one product reads, or the matrices of a block", {})
      .preset("paper", {{"model", registry::texts(models)},
                        {"batch", {number(8)}},
                        {"context", {number(512)}},
                        {"precision", {text("fp32"), text("bf16_fused")}},
                        {"impl", {text("fused")}}})
      .refuses(fsdp_refusal)
      .memory(fsdp_memory)
      .runs(run_fsdp_experiment);
  registry::add_wire_axis(made);
  add_fsdp_metrics(made);
  return made;
}

}  // namespace syslab
