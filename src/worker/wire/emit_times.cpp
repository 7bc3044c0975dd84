#include "worker/wire/emit_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stats/dependence.hpp"
#include "stats/distributions.hpp"
#include "stats/noise.hpp"
#include "stats/summary.hpp"

namespace syslab::worker {
namespace {

MetricRecord of_summary(std::string name, std::string unit, const stats::Summary& summary) {
  MetricRecord made{.name = std::move(name), .unit = std::move(unit), .value = summary.median, .n = summary.n};
  if (summary.n >= kFewestForInterval) {
    made.low = summary.median_95.low;
    made.high = summary.median_95.high;
  } else {
    made.note = fmt::format("{} samples are too few for a 95 % interval", summary.n);
  }
  return made;
}

// The results of sampling, as records.
class Times {
 public:
  Times(CaseContext& context, const Work& work) : context_(context), work_(work) {}

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
    const MetricRecord time = of_summary("time", "s", summary);
    context_.emit(time);
    context_.metric("time_q1", "s", summary.q1);
    context_.metric("time_q3", "s", summary.q3);
    context_.metric("time_min", "s", summary.min);
    context_.emit(mean_of(summary, stats::variance_inflation(samples.seconds)));
    context_.metric("time_stddev", "s", summary.standard_deviation);
    emit_rate("tflops", "TFLOP/s", work_.flops * 1e-12, time);
    emit_rate("gbps", "GB/s", work_.bytes * 1e-9, time);
  }

 private:
  // Student's interval of the mean, widened like the median's if samples are correlated (stats/summary.hpp).
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

  // Work per time; the ends of the interval change places: the longest time is the lowest rate.
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
  const Work& work_;
};

}  // namespace

MetricRecord median_metric(std::string name, std::string unit, const std::vector<double>& samples) {
  return of_summary(std::move(name), std::move(unit), stats::summarize(samples));
}

void emit_times(CaseContext& context, const measure::Samples& samples, const Work& work) {
  Times(context, work).emit(samples);
}

namespace {

// What it tells, in the units of its keys.
Json to_json(const GpuState& state) {
  Json json = Json::object();
  if (state.sm_mhz) json["sm_mhz"] = *state.sm_mhz;
  if (state.memory_mhz) json["memory_mhz"] = *state.memory_mhz;
  if (state.celsius) json["celsius"] = *state.celsius;
  if (state.watts) json["watts"] = *state.watts;
  if (state.slowed_by) json["slowed_by"] = *state.slowed_by;
  return json;
}

}  // namespace

void emit_unresolved(CaseContext& context, const measure::Samples& samples) {
  context.emit(
      SampleRecord{.series = "time_under_resolution", .unit = "s", .values = samples.seconds, .flags = samples.flags});
  context.missing_metric("time", "s", std::string(to_string(stats::TimingReason::under_resolution)));
}

Json to_json(const measure::Resolution& it) {
  if (it.empty_calls == 0) return Json::object();
  Json facts{{"handover",
              {{"seconds", it.handover},
               {"high", it.handover_high},
               {"with_results", it.with_results},
               {"least", it.least},
               {"least_with_results", it.least_with_results},
               {"share", it.share},
               {"share_with_results", it.share_with_results},
               {"empty_calls", it.empty_calls}}}};
  if (it.is_under()) facts["no_time"] = to_string(stats::TimingReason::under_resolution);
  return facts;
}

Json timing_facts(const measure::Protocol& protocol, const measure::Samples& samples, const measure::HostLoad& load) {
  std::vector<std::string> noise = stats::noise_labels(samples.seconds);
  if (load.contended()) noise.emplace_back("contended");
  if (samples.clock_settled == false) noise.emplace_back("clock_moving");
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
  if (samples.clock_settled) facts["clock_settled"] = *samples.clock_settled;
  for (const GpuState& state : {samples.before, samples.after}) {
    if (Json told = to_json(state); !told.empty()) facts["device_state"].push_back(std::move(told));
  }
  if (!samples.clocks_hz.empty()) facts["clock_mhz"] = stats::summarize(samples.clocks_hz).median / 1e6;
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

}  // namespace syslab::worker
