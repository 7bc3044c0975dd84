#include "worker/operator_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "device/nvtx.hpp"
#include "measure/burst.hpp"
#include "measure/eager.hpp"
#include "measure/host_load.hpp"
#include "measure/sampler.hpp"
#include "stats/dependence.hpp"
#include "stats/distributions.hpp"
#include "stats/noise.hpp"
#include "stats/summary.hpp"
#include "worker/bench.hpp"
#include "worker/bursts.hpp"
#include "worker/checked_operator.hpp"

namespace syslab::worker {
namespace {

constexpr std::int64_t kFewestForInterval = 6;

// What sampling leaves behind, as records.
class Times {
 public:
  Times(CaseContext& context, const OperatorCase& operator_case) : context_(context), case_(operator_case) {}

  void emit(const measure::Samples& samples) {
    SampleRecord record;
    record.series = "time";
    record.unit = "s";
    record.values = samples.seconds;
    record.flags = samples.flags;
    context_.emit(record);
    if (!samples.clocks_hz.empty()) {
      SampleRecord clocks;
      clocks.series = "clock";
      clocks.unit = "Hz";
      clocks.values = samples.clocks_hz;
      clocks.flags = samples.flags;
      context_.emit(clocks);
    }
    if (!samples.warmup_seconds.empty()) {
      SampleRecord warmup;
      warmup.series = "warmup";
      warmup.unit = "s";
      warmup.values = samples.warmup_seconds;
      context_.emit(warmup);
    }

    const stats::Summary summary = stats::summarize(samples.seconds);
    MetricRecord time{.name = "time", .unit = "s", .value = summary.median, .n = summary.n};
    if (summary.n >= kFewestForInterval) {
      time.low = summary.median_95.low;
      time.high = summary.median_95.high;
    } else {
      time.note = fmt::format("{} samples are too few for a 95 % interval", summary.n);
    }
    context_.emit(time);
    context_.metric("time_q1", "s", summary.q1);
    context_.metric("time_q3", "s", summary.q3);
    context_.metric("time_min", "s", summary.min);
    context_.emit(mean_of(summary, stats::variance_inflation(samples.seconds)));
    context_.metric("time_stddev", "s", summary.standard_deviation);
    emit_rate("tflops", "TFLOP/s", case_.flops * 1e-12, time);
    emit_rate("gbps", "GB/s", case_.bytes * 1e-9, time);
  }

 private:
  // Student's interval of the mean, widened as the median's is where samples hang together (stats/summary.hpp).
  static MetricRecord mean_of(const stats::Summary& summary, double inflation) {
    MetricRecord mean{.name = "time_mean", .unit = "s", .value = summary.mean, .n = summary.n};
    if (summary.n < 2) {
      mean.note = "one sample has no interval";
      return mean;
    }
    const double independent = static_cast<double>(summary.n) / inflation;
    const double half_width = stats::student_t_quantile(0.975, std::max(independent - 1, 1.0)) *
                              summary.standard_deviation / std::sqrt(independent);
    mean.low = summary.mean - half_width;
    mean.high = summary.mean + half_width;
    return mean;
  }

  // Work per time; the interval turns round: the longest time is the lowest rate.
  void emit_rate(const std::string& name, const std::string& unit, double work, const MetricRecord& time) {
    if (!(work > 0) || !(*time.value > 0)) return;
    MetricRecord rate{.name = name, .unit = unit, .value = work / *time.value, .n = time.n, .note = time.note};
    if (time.low && time.high && *time.low > 0) {
      rate.low = work / *time.high;
      rate.high = work / *time.low;
    }
    context_.emit(rate);
  }

  CaseContext& context_;
  const OperatorCase& case_;
};

Json facts_of(const measure::Protocol& protocol, const measure::Samples& samples, const measure::HostLoad& load) {
  std::vector<std::string> noise = stats::noise_labels(samples.seconds);
  if (load.contended()) noise.emplace_back("contended");
  Json facts{{"protocol", measure::to_json(protocol)},
             {"stop", samples.stop},
             {"samples", samples.seconds.size()},
             {"calls_per_sample", samples.calls_per_sample},
             {"launched", samples.graphs ? "graph" : "direct"},
             {"precision", samples.precision},
             {"warmup_calls", samples.warmup_calls},
             {"cool_downs", samples.pauses},
             {"verified", samples.verified},
             {"noise", noise}};
  if (!samples.why_not_captured.empty()) facts["not_captured"] = samples.why_not_captured;
  if (load.load_average) facts["load_average"] = *load.load_average;
  if (load.steal_share) facts["steal_share"] = *load.steal_share;
  if (!samples.flags.empty()) {
    const auto flagged = [&samples](std::int64_t flag) {
      return std::count_if(samples.flags.begin(), samples.flags.end(),
                           [flag](std::int64_t flags) { return (flags & flag) != 0; });
    };
    facts["slow_clock_samples"] = flagged(measure::kSlowClock);
    const auto tell = [&](const char* key, std::int64_t flag) {
      if (const auto count = flagged(flag); count > 0) facts[key] = count;
    };
    tell("host_in_window_samples", measure::kHostInWindow);
    tell("power_capped_samples", measure::kPowerCapped);
    tell("hot_samples", measure::kHot);
    tell("hardware_slowdown_samples", measure::kHardwareSlowdown);
  }
  return facts;
}

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
  if (!seconds.empty()) Times(context, operator_case).emit({.seconds = seconds});
  Json facts = checked.facts();
  facts.update({{"protocol", measure::to_json(protocol)},
                {"bursts", seconds.size()},
                {"calls_per_burst", burst.calls()},
                {"calls_per_sample", burst.calls_per_sample()},
                {"warmup_calls", burst.warmup_calls()},
                {"verified", burst.verified()}});
  if (!burst.why_not_captured().empty()) facts["not_captured"] = burst.why_not_captured();
  facts.update(bench.facts());
  context.emit(FactRecord{facts.dump()});
}

}  // namespace

void run_operator_case(CaseContext& context, const OperatorCase& operator_case) {
  const measure::Protocol protocol = measure::find_protocol(context.request().protocol);
  const Bench bench(context.request(), operator_case);
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
  Json facts = facts_of(protocol, samples, watch.finish());
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
  Times(context, operator_case).emit(samples);
  if (eager) emit_eager(context, *eager);
  facts.update(checked.facts());
  facts.update(bench.facts());
  context.emit(FactRecord{facts.dump()});
}

}  // namespace syslab::worker
