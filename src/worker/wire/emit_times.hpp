// Emits the results of sampling as records, the same for every kind of case.
#pragma once

#include "core/text/json.hpp"
#include "measure/host_load.hpp"
#include "measure/protocol.hpp"
#include "measure/resolution.hpp"
#include "measure/sampler.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {

// Per call; 0: no rate is reported.
struct Work {
  double flops = 0, bytes = 0;
};

inline constexpr std::int64_t kFewestForInterval = 6;  // samples

// The median of samples with its 95 % interval (stats/summary.hpp); with fewer, a note instead of the interval.
MetricRecord median_metric(std::string name, std::string unit, const std::vector<double>& samples);

// Series "time", "clock" and "warmup"; metrics "time" with its interval, quantiles, mean and deviation, rates.
void emit_times(CaseContext& context, const measure::Samples& samples, const Work& work);

// Of times that are under the resolution: the samples as series "time_under_resolution", which no report reads, and the
// metric "time" without a value.
void emit_unresolved(CaseContext& context, const measure::Samples& samples);

// Fact "handover"; and "no_time" with its reason code (stats::TimingReason) where the time is not told. An empty object
// where nothing is known.
Json to_json(const measure::Resolution& resolution);

// The protocol, why sampling stopped, what was flagged, how busy the machine was.
Json timing_facts(const measure::Protocol& protocol, const measure::Samples& samples, const measure::HostLoad& load);

}  // namespace syslab::worker
