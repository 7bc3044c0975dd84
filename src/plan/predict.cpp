#include "plan/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace syslab::plan {
namespace {

struct ChosenRate {
  double per_second = 0;
  std::string source;
};

ChosenRate choose(double own, double machine, double assumed, const char* unit) {
  const auto text = [unit](double rate) { return fmt::format("{:.3g} {}", rate * 1e-9, unit); };
  if (own > 0) return {own, text(own) + ", its own rate at other sizes"};
  if (machine > 0) return {machine, text(machine) + ", the best measured here: perhaps too short"};
  return {assumed, text(assumed) + ", assumed"};
}

// How many samples a case takes if it reaches its precision before a budget ends it, in units of the minimum: 20 to 300
// for a minimum of 20 have been seen, depending on how busy the machine was.
constexpr double kUsualSamples = 5;
constexpr double kVerifiedAtMost = 0.2;  // of the time in warm-up and samples, but for one call

double seconds_or(Nanoseconds limit, double otherwise) {
  return limit.count() > 0 ? Seconds(limit).count() : otherwise;
}

// Worker start, check against an oracle that is a plain loop, warm-up, samples with new inputs for each, verification
// of some of them. All in seconds, but for `bytes`, of one input set.
double launch_of(const DeviceBasis& device, double call, double oracle, double bytes) {
  const Course& course = device.course;
  const double refresh = bytes / device.refreshed_per_s, flush = course.flushed_bytes / device.flushed_per_s;
  const double inputs = std::max(bytes, course.rotated_bytes) / device.refreshed_per_s;
  const double warm_calls = std::max<double>(course.warmup_calls, Seconds(course.warmup_time).count() / call);
  const double warmup =
      std::max(call + refresh, std::min(warm_calls * (call + refresh), seconds_or(course.warmup_limit, INFINITY)));
  const double estimating = course.estimate_calls > 0 ? (1 + course.estimate_calls) * (call + flush) : 0;

  const double calls = std::max(1.0, std::ceil(Seconds(course.sample_floor).count() / call));  // of a sample
  const double each = calls * (call + refresh) + flush;
  double samples = std::min<double>(course.max_samples, kUsualSamples * course.min_samples);
  if (course.repeat_time.count() > 0) samples = Seconds(course.repeat_time).count() / (call + flush);
  samples = std::min({samples, seconds_or(course.device_budget, INFINITY) / (calls * call),
                      seconds_or(course.wall_budget, INFINITY) / each});
  samples = std::max(1.0, std::ceil(samples));
  const double verifying = oracle * std::max(1.0, std::min(course.verify_share * samples * calls,
                                                           kVerifiedAtMost * (warmup + samples * each) / oracle));
  return device.start + inputs + call + oracle + estimating + warmup + samples * each + verifying;
}

void estimate(PlannedCase& planned, const Basis& basis) {
  const registry::Experiment& experiment = *planned.experiment;
  const double flops = experiment.flops ? experiment.flops(planned.params) : 0;
  const double bytes = experiment.bytes ? experiment.bytes(planned.params) : 0;
  if (!(flops > 0) && !(bytes > 0)) return;
  const auto found = basis.own.find(rate_key(experiment.id, planned.implementation));
  const Rates own = found == basis.own.end() ? Rates{} : found->second;
  const DeviceBasis& device = basis.of(planned.device);
  const ChosenRate compute = choose(own.flops, device.best.flops, device.assumed.flops, "GFLOP/s");
  const ChosenRate traffic = choose(own.bytes, device.best.bytes, device.assumed.bytes, "GB/s");
  const double by_compute = flops > 0 ? flops / compute.per_second : 0;
  const double by_traffic = bytes > 0 ? bytes / traffic.per_second : 0;
  // Ranks share the work, and what they train is proven on small models: no oracle takes the same step.
  const double call = std::max(by_compute, by_traffic) / planned.world_size;
  const double oracle = planned.world_size > 1 ? 0 : std::max(flops / device.oracle.flops, bytes / device.oracle.bytes);
  const double launch = launch_of(device, std::max(call, 1e-9), std::max(oracle, 1e-9), bytes);
  if (!std::isfinite(launch) || launch > 1e9) return;
  planned.predicted_time = std::chrono::duration_cast<Nanoseconds>(Seconds(launch * basis.launches));
  planned.predicted_from = "estimated at " + (by_compute >= by_traffic ? compute : traffic).source;
}

}  // namespace

std::string duration_key(std::string_view case_uid, std::string_view implementation, std::int64_t world_size,
                         std::string_view law) {
  return fmt::format("{}|{}|{}|{}", case_uid, implementation, world_size, law);
}

std::string duration_key(const PlannedCase& planned) {
  return duration_key(planned.case_uid, planned.implementation, planned.world_size, planned.law);
}

std::string rate_key(std::string_view experiment, std::string_view implementation) {
  return fmt::format("{}|{}", experiment, implementation);
}

void predict(Plan& plan, const Basis& basis) {
  for (PlannedCase& planned : plan.cases) {
    if (planned.skip_reason) continue;
    const DeviceBasis& device = basis.of(planned.device);
    if (device.memory_bytes > 0 && planned.predicted_bytes > static_cast<double>(device.memory_bytes)) {
      planned.predicted_oom = fmt::format("needs {}, {}", short_size(planned.predicted_bytes), device.memory_of);
    }
    if (const auto known = basis.measured.find(duration_key(planned)); known != basis.measured.end()) {
      planned.predicted_time = std::chrono::duration_cast<Nanoseconds>(known->second.seconds);
      planned.predicted_from = "measured " + known->second.age;
      planned.time_was_measured = true;
    } else if (planned.task == Task::measure) {
      estimate(planned, basis);
    }
  }
}

Total predicted_total(const Plan& plan) {
  Total total;
  for (const PlannedCase& planned : plan.cases) {
    if (planned.skip_reason || !planned.predicted_oom.empty()) continue;
    total.time += planned.predicted_time;
    if (planned.predicted_from.empty()) ++total.unknown;
  }
  return total;
}

std::string short_size(double bytes) {
  constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return bytes >= 10 || unit == 0 ? fmt::format("{:.0f} {}", bytes, kUnits[unit])
                                  : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace syslab::plan
