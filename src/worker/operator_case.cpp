#include "worker/operator_case.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/json_text.hpp"
#include "device/nvtx.hpp"
#include "measure/burst.hpp"
#include "measure/eager.hpp"
#include "measure/host_load.hpp"
#include "measure/sampler.hpp"
#include "stats/summary.hpp"
#include "worker/bench.hpp"
#include "worker/bursts.hpp"
#include "worker/checked_operator.hpp"
#include "worker/emit_times.hpp"

namespace syslab::worker {
namespace {

Work work_of(const OperatorCase& operator_case) { return {operator_case.flops, operator_case.bytes}; }

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

// Task `paired`: the host says when it is this side's turn. A sample is a burst.
void time_in_bursts(CaseContext& context, const OperatorCase& operator_case, const measure::Protocol& protocol,
                    const measure::Subject& subject, const Bench& bench, CheckedOperator& checked) {
  const device::NvtxRange range("measure");
  const CaseRequest& request = context.request();
  measure::Burst burst(protocol, subject, bench.device(), measure::steady_clock(), request.seed, request.burst);
  const std::vector<double> seconds = serve_bursts(context.bursts(), {burst.calls(), burst.seconds_per_call()},
                                                   [&] { return burst.take().seconds_per_call; });
  checked.emit_verified("samples", burst.verified(), seconds.size());
  checked.emit_metrics();
  if (!seconds.empty()) emit_times(context, {.seconds = seconds}, work_of(operator_case));
  Json facts = checked.facts();
  facts.update({{"protocol", measure::to_json(protocol)},
                {"bursts", seconds.size()},
                {"calls_per_burst", burst.calls()},
                {"calls_per_sample", burst.calls_per_sample()},
                {"warmup_calls", burst.warmup_calls()},
                {"verified", burst.verified()}});
  if (!burst.why_not_captured().empty()) facts["not_captured"] = burst.why_not_captured();
  facts.update(bench.facts());
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace

void run_operator_case(CaseContext& context, const OperatorCase& operator_case) {
  const measure::Protocol protocol = measure::find_protocol(context.request().protocol);
  const Bench bench(context.request(), operator_case.device, static_cast<bool>(operator_case.self_time));
  measure::Device& device = bench.device();
  measure::require_launch(protocol, device, static_cast<bool>(operator_case.self_time));
  CheckedOperator checked(context, operator_case, protocol, device, bench.stream());
  context.progress(0, "checking");
  checked.check();
  const measure::Subject subject = checked.subject();
  if (context.is_paired()) return time_in_bursts(context, operator_case, protocol, subject, bench, checked);
  const measure::HostWatch watch;
  const device::NvtxRange range("measure");
  const measure::Samples samples =
      measure::take_samples(protocol, subject, {device}, context.request().seed,
                            [&](double fraction, const std::string& text) { context.progress(fraction, text); });
  Json facts = timing_facts(protocol, samples, watch.finish());
  std::optional<measure::Samples> eager;
  if (samples.graphs) {
    const device::NvtxRange one_by_one("eager");
    checked.begin_series();
    eager = measure::take_eager_samples(protocol, subject, {device}, context.request().seed);
    facts["eager_samples"] = eager->seconds.size();
    facts["eager_verified"] = eager->verified;
  }
  // All is verified before the first time is told: a wrong kernel gets none.
  checked.emit_verified("samples", samples.verified, samples.seconds.size());
  if (eager) checked.emit_verified("eager", eager->verified, eager->seconds.size());
  checked.emit_metrics();
  emit_times(context, samples, work_of(operator_case));
  if (eager) emit_eager(context, *eager);
  facts.update(checked.facts());
  facts.update(bench.facts());
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace syslab::worker
