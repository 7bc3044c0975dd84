#include "worker/cases/operator_case.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "core/text/json_text.hpp"
#include "device/cuda/nvtx.hpp"
#include "measure/burst.hpp"
#include "measure/eager.hpp"
#include "measure/host_load.hpp"
#include "measure/sampler.hpp"
#include "stats/summary.hpp"
#include "worker/cases/bench.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/checked_operator.hpp"
#include "worker/cases/kernel_code.hpp"
#include "worker/wire/emit_times.hpp"

namespace syslab::worker {
namespace {

// The median: what is quoted.
Json floor_facts(const CheckedOperator& checked, const Bench& bench, const std::vector<double>& seconds) {
  if (seconds.empty()) return Json::object();
  return checked.floor_facts(bench.peaks(checked.narrowest()), stats::summarize(seconds).median);
}

// Of the median of a series. A time that is not told leaves its samples under another name, where no report looks.
measure::Resolution tell_times(CaseContext& context, const measure::Samples& samples, const Work& work) {
  const measure::Resolution resolution =
      measure::resolution_of(context.handover(), stats::summarize(samples.seconds).median);
  if (resolution.is_under()) {
    emit_unresolved(context, samples);
  } else {
    emit_times(context, samples, work);
  }
  if (resolution.warns_of_results()) {
    context.warn({{stats::WarningCode::results_copied,
                   context.request().implementation,
                   {},
                   resolution.least_share_with_results}});
  }
  return resolution;
}

Work work_of(const Operation& operation) { return {operation.flops, operation.bytes}; }

void emit_eager(CaseContext& context, const measure::Samples& samples) {
  context.emit(SampleRecord{.series = "eager", .unit = "s", .values = samples.seconds, .flags = samples.flags});
  const stats::Summary summary = stats::summarize(samples.seconds);
  context.emit(MetricRecord{.name = "time_eager",
                            .unit = "s",
                            .value = summary.median,
                            .low = summary.median_95.low,
                            .high = summary.median_95.high,
                            .n = summary.n});
}

// Most of what a call takes that another process times is its arguments, of a function on a GPU, too: two seconds on
// the wall pass before its calls have taken a protocol's 200 ms. In turns both sides begin equally cold, and each
// launch once more.
measure::Protocol in_turns(const CaseRequest& request, const Operation& operation, measure::Protocol protocol) {
  constexpr Nanoseconds kEnough = std::chrono::milliseconds(500);
  const bool limited = protocol.warmup_limit > Nanoseconds{};
  const bool dear = request.mine && (request.device == DeviceKind::cpu || request.mine->is_function());
  if (operation.self_time && dear && limited) {
    protocol.warmup_limit = std::min(protocol.warmup_limit, kEnough);
  }
  return protocol;
}

// Task `paired`: the host says when it is this side's turn. A sample is one burst.
void time_in_bursts(CaseContext& context, const Operation& operation, const measure::Protocol& whole,
                    const measure::Subject& subject, const Bench& bench, CheckedOperator& checked) {
  const device::NvtxRange range("measure");
  const CaseRequest& request = context.request();
  const measure::Protocol protocol = in_turns(request, operation, whole);
  measure::Burst burst(protocol, subject, bench.device(), measure::steady_clock(), unforeseeable_seed(request),
                       request.burst);
  std::vector<double> clocks;
  const std::vector<double> seconds = serve_bursts(context.bursts(), {burst.calls(), burst.seconds_per_call()}, [&] {
    const measure::BurstTime took = burst.take();
    if (took.clock_hz) clocks.push_back(*took.clock_hz);
    return took.seconds_per_call;
  });
  checked.emit_verified("samples");
  checked.emit_metrics();
  Json facts = checked.facts();
  if (!seconds.empty()) facts.update(to_json(tell_times(context, {.seconds = seconds}, work_of(operation))));
  facts.update({{"protocol", measure::to_json(protocol)},
                {"bursts", seconds.size()},
                {"calls_per_burst", burst.calls()},
                {"calls_per_sample", burst.calls_per_sample()},
                {"warmup_calls", burst.warmup_calls()},
                {"seconds_on_the_wall", burst.seconds_on_the_wall()},
                {"timed_calls", checked.timed_calls()},
                {"verified", burst.verified()}});
  if (!clocks.empty()) facts["clock_mhz"] = stats::summarize(clocks).median / 1e6;
  if (const auto settled = burst.clock_settled()) {
    facts["clock_settled"] = *settled;
    if (!*settled) facts["noise"] = {"clock_moving"};
  }
  if (!burst.why_not_captured().empty()) facts["not_captured"] = burst.why_not_captured();
  facts.update(bench.facts());
  facts.update(floor_facts(checked, bench, seconds));
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace

std::uint64_t unforeseeable_seed(const CaseRequest& request) {
  if (!request.mine) return request.seed;
  std::random_device entropy;
  return (static_cast<std::uint64_t>(entropy()) << 32) | entropy();
}

void run_operator_case(CaseContext& context, const Operation& operation) {
  const measure::Protocol protocol = measure::find_protocol(context.request().protocol);
  const Bench bench(context.request(), operation.device, static_cast<bool>(operation.self_time));
  measure::Device& device = bench.device();
  const bool captured_there = operation.self_time && context.serve_graphs(protocol.launch == measure::Launch::graph);
  measure::require_launch(protocol, device, static_cast<bool>(operation.self_time), captured_there);
  context.can_tell_code();
  if (context.is_code()) {
    InputSets sets(context, operation, bench.stream());
    return tell_code(context, operation, sets, bench.stream());
  }
  context.serve_graphs(false);  // a first call may load kernels and allocate, which no capture allows
  CheckedOperator checked(context, operation, protocol, device, unforeseeable_seed(context.request()), bench.stream());
  context.progress(0, "checking");
  checked.check();
  context.serve_graphs(captured_there);
  const measure::Subject subject = checked.subject();
  if (context.is_paired()) return time_in_bursts(context, operation, protocol, subject, bench, checked);
  const measure::HostWatch watch;
  const device::NvtxRange range("measure");
  const measure::Samples samples =
      measure::take_samples(protocol, subject, {device}, unforeseeable_seed(context.request()),
                            [&](double fraction, const std::string& text) { context.progress(fraction, text); });
  Json facts = timing_facts(protocol, samples, watch.finish());
  facts["timed_calls"] = checked.timed_calls();
  // Everything is verified before the first time is sent: a wrong kernel gets no time.
  std::optional<measure::Samples> eager;
  if (samples.graphs) {
    const device::NvtxRange one_by_one("eager");
    checked.emit_verified("samples");
    checked.begin_series();
    context.serve_graphs(false);
    eager = measure::take_eager_samples(protocol, subject, {device}, unforeseeable_seed(context.request()));
    facts["eager_samples"] = eager->seconds.size();
    facts["eager_verified"] = eager->verified;
  }
  checked.emit_verified(eager ? "eager" : "samples");
  checked.emit_metrics();
  facts.update(to_json(tell_times(context, samples, work_of(operation))));
  if (eager) emit_eager(context, *eager);
  facts.update(checked.facts());
  facts.update(bench.facts());
  facts.update(floor_facts(checked, bench, samples.seconds));
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace syslab::worker
