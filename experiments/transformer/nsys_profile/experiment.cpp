// nsys_profile: which kernels a training step is made of, by phase, and where its time goes; the question is in
// README.md in this folder.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "device/stream.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "trace/recording.hpp"
#include "trace/timeline.hpp"
#include "train/measured_step.hpp"
#include "worker/cases/step_case.hpp"
#include "worker/wire/emit_times.hpp"

namespace syslab::experiment_nsys_profile {
namespace {

using registry::Need;
using registry::number;
using registry::text;

// The number of recorded steps: the fewest for which the median has an interval. One more runs without recording, for
// the cost of recording.
constexpr int kSteps = 6;
constexpr std::size_t kMostSpans = 50000;  // of the one step that is stored span by span

double seconds(Nanoseconds time) { return Seconds(time).count(); }

// One step with a batch of its own, waited for.
double timed_step(train::Workload& workload, device::Place place) {
  workload.refresh();
  device::synchronize(place);
  const Nanoseconds began = trace::host_now();
  workload.run();
  device::synchronize(place);
  return seconds(trace::host_now() - began);
}

struct Profile {
  trace::Trace trace;
  std::vector<std::size_t> steps;       // the span with which each recorded step begins
  std::vector<double> plain, recorded;  // seconds a step, without and with recording

  std::size_t first() const { return steps.front(); }
  std::size_t last_step() const { return steps.back(); }
};

// Without, with, without recording, so that drift affects both.
Profile record(train::Workload& workload, device::Place place) {
  Profile made;
  const auto plain = [&](int steps) {
    for (int i = 0; i < steps; ++i) made.plain.push_back(timed_step(workload, place));
  };
  plain(kSteps / 2 + 1);
  {
    trace::Recording recording(place);
    // The kernels of a graph belong to the ranges in which they were captured: that is recorded once more here. For any
    // other step this is a warm-up.
    workload.training().record_again();
    for (int i = 0; i < 2; ++i) static_cast<void>(timed_step(workload, place));
    for (int i = 0; i < kSteps; ++i) {
      made.steps.push_back(recording.spans());
      made.recorded.push_back(timed_step(workload, place));
    }
    made.trace = recording.finish();
  }
  plain(kSteps / 2);
  return made;
}

// The time of activities of a kind in each recorded step, in seconds.
template <typename Kind>
std::vector<double> busy_steps(const std::vector<trace::Attributed>& activities, const Profile& profile, Kind is_one) {
  std::vector<double> sums(profile.steps.size(), 0.0);
  for (const trace::Attributed& one : activities) {
    if (!is_one(one)) continue;
    const auto next = std::ranges::upper_bound(profile.steps, one.activity->span.value_or(profile.first()));
    sums[static_cast<std::size_t>(next - profile.steps.begin()) - 1] +=
        seconds(one.activity->end - one.activity->begin);
  }
  return sums;
}

void tell_phase(worker::CaseContext& context, const std::string& phase,
                const std::vector<trace::Attributed>& activities, const Profile& profile) {
  if (activities.empty()) return;  // a replay without visible kernels: zeros would be a finding
  const auto is_one = [&phase](const trace::Attributed& one) { return phase.empty() || one.belongs.phase == phase; };
  const std::int64_t launches = std::ranges::count_if(activities, [&](const trace::Attributed& one) {
    return is_one(one) && one.activity->kind == trace::ActivityKind::kernel;
  });
  const std::string prefix = phase.empty() ? "step" : phase;
  context.emit(worker::median_metric(prefix + "_busy", "s", busy_steps(activities, profile, is_one)));
  context.metric(prefix + "_launches", "1", static_cast<double>(launches) / kSteps);
  const bool replayed = !profile.trace.graph_nodes.empty();
  if (replayed) return;  // nothing of the host runs in a replay
  context.metric(prefix + "_products", "1",
                 static_cast<double>(trace::count_calls(profile.trace.spans, "gemm", phase, profile.first())) / kSteps);
}

void tell_kernels(worker::CaseContext& context, const std::vector<trace::Attributed>& activities) {
  for (const trace::KernelStat& stat : trace::kernel_stats(activities)) {
    context.emit(worker::KernelStatRecord{.phase = stat.phase,
                                          .kernel = stat.kernel,
                                          .calls = stat.calls,
                                          .total_ns = stat.total.count(),
                                          .min_ns = stat.least.count(),
                                          .max_ns = stat.most.count()});
  }
}

// The last step: ranges of the host and activities of the device, on a clock that begins with the step.
void tell_spans(worker::CaseContext& context, const Profile& profile) {
  const std::vector<trace::Span>& spans = profile.trace.spans;
  if (profile.last_step() >= spans.size()) return;
  const Nanoseconds origin = spans[profile.last_step()].begin;
  std::size_t told = 0;
  const auto emit = [&](const std::string& track, const std::string& name, std::string_view category, Nanoseconds begin,
                        Nanoseconds end) {
    if (++told > kMostSpans) return;
    context.emit(worker::SpanRecord{.track = track,
                                    .name = name,
                                    .category = std::string(category),
                                    .start_ns = (begin - origin).count(),
                                    .end_ns = (end - origin).count()});
  };
  for (std::size_t i = profile.last_step(); i < spans.size(); ++i) {
    const trace::Span& span = spans[i];
    const bool call = span.kind == device::RangeKind::kernel;
    emit(trace::kHostTrack, call ? trace::belonging_of(spans, i).operation : span.name, to_string(span.kind),
         span.begin, span.end);
  }
  for (const trace::Attributed& one : trace::attribute(profile.trace, profile.last_step())) {
    if (one.activity->track == trace::kHostTrack) continue;  // those are spans already
    const std::string& operation = one.belongs.operation;
    emit(one.activity->track, operation.empty() ? one.activity->name : operation, to_string(one.activity->kind),
         one.activity->begin, one.activity->end);
  }
  if (told > kMostSpans) context.emit(worker::FactRecord{json_text(Json{{"spans_left_out", told - kMostSpans}})});
}

// The median over the recorded steps of the ratio of two times of the same step, so that what slows a machine down
// affects both.
void tell_ratio(worker::CaseContext& context, const std::string& name, const std::vector<double>& part,
                const std::vector<double>& whole) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (whole[i] > 0 && part[i] > 0) ratios.push_back(part[i] / whole[i]);
  }
  if (!ratios.empty()) context.emit(worker::median_metric(name, "1", ratios));
}

void tell_ratios(worker::CaseContext& context, const std::vector<trace::Attributed>& activities,
                 const Profile& profile) {
  const auto steps = [&](const std::string& phase, auto is_one) {
    return busy_steps(activities, profile, [&](const trace::Attributed& one) {
      return (phase.empty() || one.belongs.phase == phase) && is_one(one.belongs.operation);
    });
  };
  const auto any = [](const std::string&) { return true; };
  const auto product = [](const std::string& operation) { return operation == "gemm" || operation.ends_with(".gemm"); };
  tell_ratio(context, "forward_product_share", steps("forward", product), steps("forward", any));
  tell_ratio(context, "step_product_share", steps("", product), steps("", any));
  tell_ratio(context, "softmax_over_products",
             steps("forward", [](const std::string& operation) { return operation.starts_with("attention.softmax"); }),
             steps("forward", [](const std::string& operation) {
               return operation == "attention.scores.gemm" || operation == "attention.values.gemm";
             }));
}

// The time of a step with recording over that without, less one. The bounds combine the worst ends of both intervals.
void tell_recording(worker::CaseContext& context, const Profile& profile) {
  const worker::MetricRecord plain = worker::median_metric("step_plain", "s", profile.plain);
  const worker::MetricRecord recorded = worker::median_metric("step_recorded", "s", profile.recorded);
  context.emit(plain);
  context.emit(recorded);
  context.emit(worker::MetricRecord{.name = "recording_overhead",
                                    .unit = "1",
                                    .value = *recorded.value / *plain.value - 1,
                                    .low = *recorded.low / *plain.high - 1,
                                    .high = *recorded.high / *plain.low - 1,
                                    .n = recorded.n});
}

void tell_attention(worker::CaseContext& context, const train::WorkloadOptions& options) {
  const model::ModelConfig& config = options.config;
  // Of a forward pass, all layers. Softmax counts five operations an element: maximum, subtraction, exponential, sum,
  // division.
  const double elements = static_cast<double>(options.batch * config.heads * config.layers) *
                          static_cast<double>(options.seq) * static_cast<double>(options.seq);
  context.metric("attention_product_flops", "FLOP", 4 * elements * static_cast<double>(config.head_dim()));
  context.metric("softmax_flops", "FLOP", 5 * elements);
}

void profile_step(worker::CaseContext& context, train::Workload& workload, const train::WorkloadOptions& options) {
  const device::Place place = device::place_of(workload.model().stream());
  const Profile profile = record(workload, place);
  const std::vector<trace::Attributed> activities = trace::attribute(profile.trace, profile.first());

  context.metric("profiled_steps", "1", kSteps);
  for (const char* phase : {"", "forward", "backward", "optimizer"}) tell_phase(context, phase, activities, profile);
  const double products = static_cast<double>(model::forward_product_count(options.config));
  context.metric("forward_products_expected", "1", products);
  context.metric("step_products_expected", "1", options.mode == train::Mode::forward ? products : 3 * products);
  tell_attention(context, options);
  tell_ratios(context, activities, profile);
  tell_recording(context, profile);

  tell_kernels(context, activities);
  tell_spans(context, profile);
  const std::string title = context.params().text("model") + ", context " + std::to_string(options.seq) + ", " +
                            context.params().text("precision") + ", " + context.request().implementation;
  context.emit(
      worker::ArtifactRecord{"timeline", "application/json",
                             trace::timeline_json(profile.trace, {.title = title, .first = profile.last_step()})});
  Json facts{{"trace", {{"source", profile.trace.source}, {"lost", profile.trace.lost}}}};
  std::string why = profile.trace.why;
  if (activities.empty())
    why += std::string(why.empty() ? "" : "; ") + "a replayed graph shows its kernels to CUPTI alone";
  if (!why.empty()) facts["trace"]["why"] = why;
  context.emit(worker::FactRecord{json_text(facts)});
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const train::WorkloadOptions options = train::workload_from(context.params(), rung);
  const std::uint64_t seed = context.request().seed;
  const MeasuredStep step = train::measured_step(options, rung, seed);
  worker::StepCase step_case = worker::step_case_of(step);
  step_case.start = [step, options, seed](device::Stream stream) {
    const auto workload = std::make_shared<train::Workload>(options, stream, seed);
    worker::RunningStep running = worker::running_step_of(workload, step);
    running.tell = [workload, options, usual = running.tell](worker::CaseContext& told) {
      usual(told);
      profile_step(told, *workload, options);
    };
    return running;
  };
  worker::run_step_case(context, step_case);
}

std::vector<registry::Metric> metrics() {
  return {{"time", "s", "median of the measured steps, each as a whole, nobody recording"},
          {"forward", "s",
           "median of the forward pass and the loss, waited for before and after; backward and "
           "optimizer alike"},
          {"profiled_steps", "1", "steps that were recorded, and kernels summed over"},
          {"step_busy", "s",
           "kernels and copies of a step, added up, median of the recorded steps; forward_busy, backward_busy, "
           "optimizer_busy alike"},
          {"step_launches", "1", "kernels of a step; forward_launches and so on alike"},
          {"step_products", "1", "matrix products that a step asked for; forward_products and so on alike"},
          {"step_products_expected", "1", "27L + 3 (a forward pass: 9L + 1), one a product of the baseline"},
          {"attention_product_flops", "FLOP", "scores and values of a forward pass, all layers: 4·B·H·T²·d"},
          {"softmax_flops", "FLOP", "softmax of a forward pass, all layers: 5·B·H·T²"},
          {"step_product_share", "1",
           "time of matrix products over that of all kernels of a step, median of the recorded steps; "
           "forward_product_share alike"},
          {"softmax_over_products", "1",
           "time of softmax over that of scores and values, of the forward pass, median of the recorded steps"},
          {"recording_overhead", "1",
           "how much longer a recorded step takes, as a part of one that is not; both medians with their intervals"}};
}

std::vector<registry::Evidence> evidence() {
  return {{.grid = {{"model", {text("small")}}, {"impl", {text("eager")}}}},
          {.need = Need::asked, .grid = {{"model", {text("large")}}, {"impl", {text("eager")}}}},
          {.need = Need::asked,
           .handout = "2025",
           .grid = {{"context", {number(128), number(256), number(512), number(1024)}}, {"impl", {text("eager")}}}},
          {.need = Need::asked,
           .handout = "2026",
           .grid = {{"model", {text("small"), text("large")}},
                    {"context", {number(256), number(512), number(1024)}},
                    {"impl", {text("eager")}}}},
          {.need = Need::nice, .preset = "paper"},
          {.preset = "laptop", .in_small = true}};
}

registry::Experiment describe() {
  return registry::experiment("nsys_profile")
      .version("2")  // 1 told means of the recorded steps where medians are told now
      .title("Profiling")
      .question(
          "Which kernels take the time of a forward pass, a backward pass and an optimizer step, how often is each "
          "launched, what is the share of matrix products, and how does softmax compare with them inside attention?")
      .analogue(
          "kernels are recorded by CUPTI inside the program and attributed to its own ranges; the same ranges are "
          "NVTX, "
          "so that Nsight Systems shows them too, where it is installed. On the CPU a call of an operator is the "
          "kernel")
      .problem("2025", "nsys_profile", 5)
      .problem("2026", "nsys_profile", 5)
      .all_evidence(evidence())
      .tags({"model", "profile"})
      .protocol("cs336")
      .axes(registry::axes_of(train::param_list(), {{"context", {number(512)}}, {"precision", {text("fp32")}}}))
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", {text("host"), text("host_eager"), text("eager"), text("fused"), text("graph")}}})
      .preset("laptop", {{"model", {text("cpu10m")}},
                         {"context", {number(64), number(128)}},
                         {"device", {text("cpu")}},
                         {"impl", {text("host"), text("host_eager")}}})
      .preset("paper", {{"context", {number(128), number(256), number(512), number(1024)}},
                        {"precision", {text("fp32"), text("bf16_amp")}},
                        {"impl", {text("eager"), text("fused"), text("graph")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .refuses(train::refusal_by_axes)
      .metrics(metrics())
      .oom_is_an_answer()
      .flops(train::flops_by_axes)
      .memory(train::predicted_bytes_by_axes)
      .runs(run_case);
}

SYSLAB_EXPERIMENT(nsys_profile, describe);

}  // namespace
}  // namespace syslab::experiment_nsys_profile
