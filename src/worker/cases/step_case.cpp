#include "worker/cases/step_case.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/memory_log.hpp"
#include "device/stream.hpp"
#include "measure/burst.hpp"
#include "measure/clock.hpp"
#include "measure/host_load.hpp"
#include "measure/sampler.hpp"
#include "stats/summary.hpp"
#include "worker/cases/bench.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/wire/emit_times.hpp"
#include "worker/wire/tell_rung.hpp"

namespace syslab::worker {
namespace {

void check(CaseContext& context, const StepCase& step_case, device::Stream stream) {
  const device::NvtxRange range("check");
  emit_checks(context, step_case.check(stream));
}

// Each phase between two waits for the device, by the host's clock, as the hand-out has it: what a phase takes when
// nothing overlaps it. Their sum is more than the whole step, which launches ahead.
void time_phases(CaseContext& context, const RunningStep& running, device::Place place, int steps) {
  const device::NvtxRange range("phases");
  std::vector<std::vector<double>> seconds(running.phases.size());
  for (int i = 0; i < steps; ++i) {
    if (running.refresh) running.refresh();
    device::synchronize(place);
    for (std::size_t p = 0; p < running.phases.size(); ++p) {
      const Nanoseconds began = measure::steady_clock().now();
      running.phases[p].queue();
      device::synchronize(place);
      seconds[p].push_back(Seconds(measure::steady_clock().now() - began).count());
    }
  }
  for (std::size_t p = 0; p < running.phases.size(); ++p) {
    const std::string& name = running.phases[p].name;
    context.emit(SampleRecord{.series = name, .unit = "s", .values = seconds[p]});
    const stats::Summary summary = stats::summarize(seconds[p]);
    context.emit(median_metric(name, "s", seconds[p]));
    context.metric(name + "_mean", "s", summary.mean);
    context.metric(name + "_stddev", "s", summary.standard_deviation);
  }
}

// Task `paired`: the host says when it is this side's turn. A sample is one burst.
void time_in_bursts(CaseContext& context, const StepCase& step_case, const measure::Protocol& protocol,
                    const measure::Subject& subject, const Bench& bench) {
  const device::NvtxRange range("measure");
  const CaseRequest& request = context.request();
  measure::Burst burst(protocol, subject, bench.device(), measure::steady_clock(), request.seed, request.burst);
  const std::vector<double> seconds = serve_bursts(context.bursts(), {burst.calls(), burst.seconds_per_call()},
                                                   [&] { return burst.take().seconds_per_call; });
  if (!seconds.empty()) emit_times(context, {.seconds = seconds}, {.flops = step_case.flops});
  Json facts{{"protocol", measure::to_json(protocol)}, {"bursts", seconds.size()},
             {"calls_per_burst", burst.calls()},       {"calls_per_sample", burst.calls_per_sample()},
             {"warmup_calls", burst.warmup_calls()},   {"verified", burst.verified()}};
  facts.update(bench.facts());
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace

RunningStep running_step_of(const std::shared_ptr<StepWorkload>& workload, const MeasuredStep& step) {
  RunningStep running;
  running.owner = workload;
  running.refresh = [workload] { workload->refresh(); };
  running.step = [workload] { workload->run(); };
  running.verify = [workload] {
    if (const auto wrong = workload->what_is_wrong()) throw CheckFailed(*wrong);
  };
  if (step.in_phases) {
    running.phases.push_back({"forward", [workload] { workload->forward(); }});
    if (step.trains || workload->goes_back()) {
      running.phases.push_back({"backward", [workload] { workload->backward(); }});
    }
    if (step.trains) running.phases.push_back({"optimizer", [workload] { workload->update(); }});
  }
  running.tell = [workload, parameters = step.parameters](CaseContext& context) {
    for (const RungTaken& taken : workload->rungs_taken()) {
      tell_rung(context, taken.operation, taken.rung, taken.because);
    }
    context.metric("parameters", "1", parameters);
    context.metric("loss", "1", workload->loss());
    if (workload->graph_nodes() > 0) context.metric("graph_nodes", "1", static_cast<double>(workload->graph_nodes()));
    if (!workload->why_no_graph().empty()) context.missing_metric("graph_nodes", "1", workload->why_no_graph());
  };
  return running;
}

StepCase step_case_of(const MeasuredStep& step) {
  if (step.refusal) throw Unsupported(*step.refusal);
  StepCase made;
  made.device = step.device;
  made.check = step.check;
  made.start = [step](device::Stream stream) { return running_step_of(step.start(stream), step); };
  made.flops = step.flops;
  made.tokens = step.tokens;
  return made;
}

void emit_checks(CaseContext& context, const std::vector<StepCheck>& checks) {
  std::string failure;
  for (const StepCheck& one : checks) {
    const bool passed = one.error <= one.tolerance;  // false for a NaN
    CheckRecord record;
    record.name = "reference:" + one.name;
    record.outcome = passed ? Outcome::passed : Outcome::falsified;
    record.cases_run = 1;
    record.seed = std::to_string(context.request().seed);
    record.message =
        fmt::format("{}: {:.3g} off, at most {:.3g} is allowed; {}", one.name, one.error, one.tolerance, one.message);
    if (std::isfinite(one.error)) record.worst_error = one.error;
    record.tolerance = one.tolerance;
    record.fraction_checked = one.fraction;
    context.emit(record);
    if (!passed && failure.empty()) failure = record.message;
  }
  if (!failure.empty()) throw CheckFailed(failure);
}

void run_step_case(CaseContext& context, const StepCase& step_case) {
  measure::Protocol protocol = measure::find_protocol(context.request().protocol);
  if (step_case.warmup) {
    protocol.warmup_calls = *step_case.warmup;
    protocol.warmup_time = protocol.warmup_limit = {};
    protocol.warmup_until_steady = false;
    protocol.sample_floor = {};  // a step is long enough to be timed alone
  }
  const Bench bench(context.request(), step_case.device);
  const device::Place place = device::place_of(bench.stream());
  const bool check_last = step_case.check_last && !context.is_paired();
  if (!check_last) {
    context.progress(0, "checking");
    check(context, step_case, bench.stream());
  }

  context.progress(0.1, "building");
  device::MemoryLog& log = device::MemoryLog::of(place);
  const std::int64_t before = log.live_bytes();
  const RunningStep running = step_case.start(bench.stream());
  log.reset_peak();

  measure::Subject subject;
  subject.call = [&running](int) { running.step(); };
  if (running.refresh) subject.refresh = [&running](int) { running.refresh(); };
  if (running.verify) {
    subject.verify = [&running](int) {
      running.verify();
      return true;
    };
  }
  if (running.refresh) running.refresh();
  if (context.is_paired()) return time_in_bursts(context, step_case, protocol, subject, bench);
  const measure::HostWatch watch;
  measure::Samples samples;
  {
    const device::NvtxRange range("measure");
    samples =
        measure::take_samples(protocol, subject, {bench.device()}, context.request().seed,
                              [&](double fraction, const std::string& text) { context.progress(fraction, text); });
  }
  const double peak = static_cast<double>(log.peak_bytes() - before);
  if (running.verify) running.verify();
  if (check_last) check(context, step_case, bench.stream());  // before the first time is told: a wrong step gets none
  emit_times(context, samples, {.flops = step_case.flops});
  if (step_case.tokens > 0) {
    context.metric("tokens_per_second", "1/s", step_case.tokens / stats::summarize(samples.seconds).median);
  }
  context.metric("peak_bytes", "B", peak);
  if (!running.phases.empty()) time_phases(context, running, place, static_cast<int>(samples.seconds.size()));
  if (running.tell) running.tell(context);
  Json facts = timing_facts(protocol, samples, watch.finish());
  facts.update(bench.facts());
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace syslab::worker
