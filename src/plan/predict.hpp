// Predicts the time of a planned case and whether memory suffices, before anything runs.
#pragma once

#include <map>
#include <string>

#include "core/text/units.hpp"
#include "plan/plan.hpp"

namespace syslab::plan {

// Attempts with equal keys take similar times: case, implementation, number of ranks, and law.
std::string duration_key(std::string_view case_uid, std::string_view implementation, std::int64_t world_size,
                         std::string_view law);
std::string duration_key(const PlannedCase& planned);

struct MeasuredDuration {
  Seconds seconds{};  // of an attempt of as many launches as will be made
  std::string age;    // "2 days ago"
};

// Work per second; 0: unknown.
struct Rates {
  double flops = 0, bytes = 0;
};

// The course of one launch, as its protocol has it (measure/protocol.hpp).
struct Course {
  int warmup_calls = 0, min_samples = 0, max_samples = 0;
  int estimate_calls = 0;  // more calls before warm-up, one among them not timed; 0: none
  Nanoseconds warmup_time{}, sample_floor{};
  Nanoseconds warmup_limit{};                                 // 0: none
  Nanoseconds device_budget{}, wall_budget{}, repeat_time{};  // of the samples; 0: no such limit
  double verify_share = 0;                                    // of the timed calls
  double rotated_bytes = 0, flushed_bytes = 0;                // all input sets, at least; written before each sample
};

// Without a rate of its own or of the machine, a case is taken to do this much: what a plain loop does on a slow core;
// and on a GPU, a kernel without tensor cores, with a tenth of a large card's memory.
inline constexpr Rates kAssumedRates{1e9, 1e9};
inline constexpr Rates kAssumedGpuRates{1e13, 3e11};

// What cases on one device have.
struct DeviceBasis {
  Rates best;                      // that anything reached there
  Rates assumed = kAssumedRates;   // where nothing was measured
  Course course;                   // its caches decide what inputs and flushes cost
  double start = 0.05;             // seconds until a fresh worker has it
  double refreshed_per_s = 150e6;  // bytes of random inputs, fingerprinted, and of poisoned outputs: on a slow core
  double flushed_per_s = 4e9;      // bytes of a cache written over
  Rates oracle = kAssumedRates;    // what checks: a plain loop
  std::uint64_t memory_bytes = 0;  // that a case may have; 0: not known
  std::string memory_of;           // "this machine has 24 GiB", "--memory-limit is 2 GiB": where the limit comes from
};

// What predictions are made from.
struct Basis {
  std::map<std::string, MeasuredDuration> measured;  // by duration_key
  std::map<std::string, Rates> own;                  // by rate_key: what the implementation reached at other sizes
  DeviceBasis cpu;
  DeviceBasis gpu{.assumed = kAssumedGpuRates,
                  .start = 0.02,  // its worker is there already, as a rule
                  .refreshed_per_s = 100e9,
                  .flushed_per_s = 1e12,
                  .oracle = {5e12, 100e9}};
  int launches = 1;
  const DeviceBasis& of(DeviceKind device) const { return device == DeviceKind::cuda ? gpu : cpu; }
};
std::string rate_key(std::string_view experiment, std::string_view implementation);

// Fills predicted_time, predicted_from and time_was_measured of cases that are not skipped, and predicted_oom where
// what the experiment says that the case takes at least is more than there is. Times come from the stored duration of
// the same case, else from the experiment's flops and bytes over the best known rates; cases without either, and laws
// that never ran, stay without.
void predict(Plan& plan, const Basis& basis);

struct Total {
  Nanoseconds time{};
  int unknown = 0;  // cases without a prediction
};
Total predicted_total(const Plan& plan);  // of the cases that would be tried

// "242 GiB", "1.5 GiB", "640 B": a size as it stands in a table.
std::string short_size(double bytes);

}  // namespace syslab::plan
