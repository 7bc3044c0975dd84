// How long a planned case will take and whether its memory suffices, said before anything runs.
#pragma once

#include <map>
#include <string>

#include "core/units.hpp"
#include "plan/plan.hpp"

namespace syslab::plan {

// What makes two attempts take alike long: case, implementation, and law.
std::string duration_key(std::string_view case_uid, std::string_view implementation, std::string_view law);
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
  double verify_share = 0;                                    // of the samples
  double rotated_bytes = 0, flushed_bytes = 0;                // all input sets, at least; written before each sample
};

// What predictions are made from.
struct Basis {
  std::map<std::string, MeasuredDuration> measured;  // by duration_key
  std::map<std::string, Rates> own;                  // by rate_key: what the implementation reached at other sizes
  Rates machine;                                     // the best that anything reached on this machine
  Course course;
  int launches = 1;
  std::uint64_t memory_bytes = 0;  // that a case may have; 0: not known
  std::string memory_of;           // "this machine has 24 GiB", "--memory-limit is 2 GiB": whose it is
};
std::string rate_key(std::string_view experiment, std::string_view implementation);

// Without a rate of its own or of the machine, a case is taken to do this much: what a plain loop does on a slow core.
inline constexpr Rates kAssumedRates{1e9, 1e9};

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
