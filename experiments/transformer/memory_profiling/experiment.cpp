// memory_profiling: memory use over a pass by category, compared with the predicted use; the question is in README.md
// in this folder.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "device/memory_log.hpp"
#include "device/stream.hpp"
#include "ops/attention/dispatch.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "trace/memory.hpp"
#include "train/measured_step.hpp"
#include "train/peak_memory.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::experiment_memory_profiling {
namespace {

using registry::Need;
using registry::number;
using registry::text;
using train::MemoryPass;

// A pass that can be repeated, and the memory in use when it was set up.
struct Profiled {
  MemoryPass pass = MemoryPass::step;
  std::shared_ptr<train::Workload> workload;
  std::optional<model::Activations> inferred;  // of the last pass of inference: its logits and loss
  std::vector<trace::Allocation> before;

  void forward() {
    if (pass != MemoryPass::forward) return workload->forward();
    const model::Tokens tokens = workload->training().tokens(0);
    inferred.reset();
    inferred = workload->model().forward(tokens, model::Keep::nothing);
    workload->model().loss(*inferred, tokens.ids + tokens.count());
  }
  void run() {
    if (pass == MemoryPass::forward) return forward();
    workload->run();
  }
  double inferred_loss() { return model::values_of(inferred->loss, workload->model().stream()).front(); }
};

struct PhaseTime {
  const char* name;
  Nanoseconds begin{}, end{};
};

// One pass, by the clock of the memory's log.
struct PassTimes {
  Nanoseconds begin{}, shift{};  // shift: added, it is the host's clock
  std::vector<PhaseTime> phases;
  trace::Trace ranges;

  trace::ForwardPass forward() const { return {phases.front().begin, phases.front().end}; }
};

// Runs one more pass, with its log.
PassTimes run_logged(Profiled& step, device::MemoryLog& log) {
  step.workload->refresh();
  device::synchronize(step.workload->model().stream());
  log.clear();
  PassTimes times{.begin = log.now()};
  times.shift = trace::host_now() - times.begin;
  trace::Recorder recorder;
  const device::Listening listening(recorder);
  const auto run = [&](const char* name, const std::function<void()>& phase) {
    const Nanoseconds from = log.now();
    phase();
    times.phases.push_back({name, from, log.now()});
  };
  run("forward", [&] { step.forward(); });
  if (step.pass == MemoryPass::step) {
    run("backward", [&] { step.workload->backward(); });
    run("optimizer", [&] { step.workload->update(); });
  }
  times.ranges.spans = recorder.spans();
  times.ranges.source = "host clock";
  return times;
}

// Memory that the pass before left, and that this pass released before it allocated any, does not count as this pass's.
std::vector<trace::Allocation> allocations_of(const device::MemoryLog& log, const Profiled& step, Nanoseconds begin) {
  std::vector<trace::Allocation> all = trace::pair_events(log.events(), begin, step.before);
  std::erase_if(all, [&](const trace::Allocation& one) {
    return one.category == device::MemoryCategory::activation && one.begin <= begin;
  });
  return all;
}

void tell_peak(worker::CaseContext& context, const trace::LiveBytes& peak) {
  for (std::size_t kind = 0; kind < trace::kLiveKinds.size(); ++kind) {
    std::string name = "at_peak_" + std::string(to_string(trace::kLiveKinds[kind]));
    std::ranges::replace(name, ' ', '_');
    context.metric(name, "B", static_cast<double>(peak.of[kind]));
  }
  context.metric("timeline_peak", "B", static_cast<double>(peak.total()));
}

// Every allocation at its time; those from before at the beginning.
void tell_allocations(worker::CaseContext& context, const std::vector<trace::Allocation>& all, const PassTimes& times) {
  for (const trace::Allocation& one : all) {
    if (one.category == device::MemoryCategory::library || (one.end && *one.end < times.begin)) continue;
    worker::MemoryEventRecord event{.t_ns = (std::max(one.begin, times.begin) - times.begin).count(),
                                    .delta_bytes = one.bytes,
                                    .tag = one.tag,
                                    .category = std::string(to_string(kind_of(one, times.forward())))};
    context.emit(event);
    if (!one.end) continue;
    event.t_ns = (*one.end - times.begin).count();
    event.delta_bytes = -one.bytes;
    context.emit(event);
  }
}

void tell_phases(worker::CaseContext& context, const PassTimes& times) {
  for (const PhaseTime& phase : times.phases) {
    context.emit(worker::SpanRecord{.track = trace::kHostTrack,
                                    .name = phase.name,
                                    .category = "phase",
                                    .start_ns = (phase.begin - times.begin).count(),
                                    .end_ns = (phase.end - times.begin).count()});
  }
}

// One more pass, with its log.
void profile(worker::CaseContext& context, Profiled& step, const std::string& title) {
  device::MemoryLog& log = device::MemoryLog::of(device::place_of(step.workload->model().stream()));
  const PassTimes times = run_logged(step, log);
  const std::vector<trace::Allocation> all = allocations_of(log, step, times.begin);
  const std::vector<trace::LiveBytes> curve = trace::live_bytes(all, times.forward(), times.begin);
  tell_peak(context, trace::peak_of(curve));
  tell_allocations(context, all, times);
  tell_phases(context, times);
  context.emit(worker::ArtifactRecord{
      "timeline", "application/json",
      trace::timeline_json(times.ranges, {.title = title}, trace::samples_of(curve, times.shift))});
  if (log.dropped_events() > 0) {
    context.emit(worker::FactRecord{json_text(Json{{"memory_events_left_out", log.dropped_events()}})});
  }
}

void tell_predictions(worker::CaseContext& context, const train::WorkloadOptions& options, MemoryPass pass) {
  const train::PeakBytes peak = train::predicted_peak(options, pass);
  context.metric("predicted_peak", "B", peak.total());
  context.metric("predicted_saved_activations", "B", peak.saved);
  context.metric("predicted_temporaries", "B", peak.temporaries);
  context.metric("framework_peak", "B", train::framework_peak(options, pass));
  const model::ModelConfig& config = options.config;
  context.metric("stream_bytes", "B", static_cast<double>(options.batch * options.seq * config.d_model) * 4);
  context.metric(
      "scores_bytes", "B",
      static_cast<double>(options.batch * config.heads) * static_cast<double>(options.seq * options.seq) * 4);
  double block = 0;
  for (const train::SavedTensor& one : train::saved_by_block(options)) block += one.bytes;
  context.metric("predicted_block_bytes", "B", block);
  context.metric("framework_block_bytes", "B", train::framework_block_bytes(options));
  context.emit(worker::FactRecord{json_text(Json{{"predicted_moment", peak.moment}})});
}

// Of the middle block, tensor by tensor, from the model's own memory; expected by the formula of its parameters.
void tell_block_gradients(worker::CaseContext& context, const model::Transformer& model) {
  const std::int64_t layer = model.config().layers / 2;
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const model::ParameterLayout& layout = model.parameters().layout();
  double bytes = 0;
  for (int i = 0; i < layout.size(); ++i) {
    if (layout.info(i).name.rfind(prefix, 0) != 0) continue;
    const TensorView gradient = model.parameters().view(model::Plane::gradient, i);
    bytes += static_cast<double>(gradient.elements()) * static_cast<double>(size_of(gradient.dtype));
  }
  context.metric("block_gradient_bytes", "B", bytes);
  context.metric("expected_block_gradient_bytes", "B",
                 static_cast<double>(model::block_parameter_count(model.config())) *
                     static_cast<double>(size_of(model.dtypes().weights)));
}

train::WorkloadOptions options_of(const Params& params, const train::Rung& rung, MemoryPass pass) {
  Params whole = params;
  whole.set("mode", std::string(pass == MemoryPass::step ? "train" : "forward"));
  return train::workload_from(whole, rung);
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const MemoryPass pass = train::parse_memory_pass(context.params().text("pass"));
  const train::WorkloadOptions options = options_of(context.params(), rung, pass);
  const std::uint64_t seed = context.request().seed;
  const MeasuredStep step = train::measured_step(options, rung, seed);
  worker::StepCase step_case = worker::step_case_of(step);
  const std::string title = context.params().text("model") + ", context " + std::to_string(options.seq) + ", " +
                            context.params().text("precision") + ", " + context.request().implementation + ", " +
                            context.params().text("pass");
  step_case.start = [step, options, seed, pass, title](device::Stream stream) {
    device::MemoryLog& log = device::MemoryLog::of(device::place_of(stream));
    log.clear();
    const Nanoseconds began = log.now();
    auto profiled = std::make_shared<Profiled>();
    profiled->pass = pass;
    profiled->workload = std::make_shared<train::Workload>(options, stream, seed);
    for (trace::Allocation& one : trace::pair_events(log.events(), began)) {
      if (!one.end) profiled->before.push_back(std::move(one));
    }
    worker::RunningStep running;
    running.owner = profiled;
    running.refresh = [profiled] { profiled->workload->refresh(); };
    running.step = [profiled] { profiled->run(); };
    running.verify = [profiled] {
      if (profiled->pass != MemoryPass::forward) {
        if (const auto wrong = profiled->workload->what_is_wrong()) throw worker::CheckFailed(*wrong);
        return;
      }
      const double loss = profiled->inferred_loss();
      if (!std::isfinite(loss)) throw worker::CheckFailed("the loss is " + std::to_string(loss));
    };
    train::WorkloadOptions predicted = options;
    predicted.sm = attention::where_of(stream).sm;
    running.tell = [profiled, predicted, pass, title, parameters = step.parameters](worker::CaseContext& told) {
      told.metric("parameters", "1", parameters);
      tell_predictions(told, predicted, pass);
      if (pass == MemoryPass::step) tell_block_gradients(told, profiled->workload->model());
      profile(told, *profiled, title);
    };
    return running;
  };
  worker::run_step_case(context, step_case);
}

std::vector<registry::Metric> metrics() {
  return {{"time", "s", "median of the measured passes"},
          {"peak_bytes", "B", "most in use during a pass, parameters and all"},
          {"timeline_peak", "B", "the same, of the pass whose log is kept"},
          {"predicted_peak", "B", "what arithmetic on this model's tensors predicts"},
          {"framework_peak", "B", "what the hand-outs' baseline needs, by its formula"},
          {"at_peak_saved_activations", "B", "of the peak, what is kept for the backward pass; others alike"},
          {"block_gradient_bytes", "B", "gradients of the parameters of one block"},
          {"stream_bytes", "B", "one activation of the residual stream in fp32: B·T·d·4"},
          {"scores_bytes", "B", "one matrix of attention scores in fp32: B·H·T²·4"},
          {"predicted_block_bytes", "B", "what one block keeps for its backward pass"},
          {"framework_block_bytes", "B", "the same of the hand-outs' baseline"}};
}

std::vector<registry::Evidence> evidence() {
  return {{.handout = "2025",
           .grid = {{"context", {number(128), number(256), number(512)}},
                    {"pass", {text("forward"), text("step")}},
                    {"impl", {text("eager")}}}},
          // A step of 2048 tokens does not fit any GPU yet, which is an answer.
          {.handout = "2026",
           .grid = {{"context", {number(128), number(512), number(2048)}},
                    {"pass", {text("forward"), text("step")}},
                    {"impl", {text("eager")}}}},
          {.need = Need::asked, .handout = "2025", .grid = {{"impl", {text("eager")}}}},
          {.need = Need::asked,
           .handout = "2026",
           .grid = {{"context", {number(128), number(512), number(2048)}}, {"impl", {text("eager")}}}},
          {.need = Need::nice, .preset = "paper"},
          {.preset = "laptop", .in_small = true}};
}

registry::Experiment describe() {
  std::vector<Axis> params = train::param_list();
  std::erase_if(params, [](const Axis& one) { return one.name == "mode"; });
  const Values passes{text("forward"), text("forward_kept"), text("step")};
  return registry::experiment("memory_profiling")
      .title("Memory profiling")
      .question(
          "How do live bytes grow and fall during inference and during a training step, what is the peak and does "
          "arithmetic predict it, what are the largest allocations, and what does a block keep for its backward pass?")
      .analogue(
          "the allocator's own log, by what each allocation is for, in place of PyTorch's memory snapshot and its "
          "viewer")
      .problem("2025", "memory_profiling", 4)
      .problem("2026", "memory_profiling", 4)
      .all_evidence(evidence())
      .tags({"model", "memory"})
      .protocol("few")
      .axes(registry::axes_of(params, {{"model", {text("xl26")}},
                                       {"context", {number(128), number(256), number(512)}},
                                       {"precision", {text("fp32"), text("bf16_amp")}}}))
      .closed_axis("pass", passes, "inference, a forward pass that keeps what backward needs, or a training step")
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"precision", {text("fp32")}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", {text("host"), text("host_eager"), text("eager"), text("fused")}}})
      .preset("laptop", {{"model", {text("cpu10m")}},
                         {"batch", {number(1)}},
                         {"context", {number(32), number(64)}},
                         {"precision", {text("fp32")}},
                         {"device", {text("cpu")}},
                         {"impl", {text("host"), text("host_eager")}}})
      .preset("paper", {{"context", {number(128), number(256), number(512), number(2048)}},
                        {"impl", {text("eager"), text("fused")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .refuses(train::refusal_by_axes)
      .skip_if("a graph takes its memory once, when it is recorded: what a step takes shows `fused`",
               [](const Params&, std::string_view implementation) { return implementation == "graph"; })
      .metrics(metrics())
      .oom_is_an_answer()
      .flops([](const Params& asked) {
        return train::flops(options_of(asked, train::ladder().back(), train::parse_memory_pass(asked.text("pass"))));
      })
      .memory([](const Params& asked, std::string_view implementation) {
        const MemoryPass pass = train::parse_memory_pass(asked.text("pass"));
        return train::predicted_peak(options_of(asked, train::find_rung(implementation), pass), pass).total();
      })
      .runs(run_case);
}

SYSLAB_EXPERIMENT(memory_profiling, describe);

}  // namespace
}  // namespace syslab::experiment_memory_profiling
