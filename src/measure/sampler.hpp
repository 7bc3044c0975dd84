// Takes samples of a call until a stop rule says enough. Time comes through an interface, so the sampler is proved on a
// fake clock with a known distribution.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "measure/protocol.hpp"

namespace syslab::measure {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds now() = 0;  // monotonic
};
Clock& steady_clock();  // CLOCK_MONOTONIC

// What is measured. `call(set)` runs the implementation once on input set `set` in [0, sets); refresh(set), outside the
// timed window, gives that set new content. verify(set), outside the window and the budgets, checks the outputs that
// the last call on `set` left, and throws if they are wrong; it returns false if it chose not to look.
struct Subject {
  int sets = 1;
  std::function<void(int set)> call;
  std::function<void(int set)> refresh;
  std::function<bool(int set)> verify;
  std::function<Nanoseconds()> self_time;  // of the last call, for implementations in another process
};

struct Samples {
  std::vector<double> seconds;  // per call: a sample of k calls is divided by k
  int calls_per_sample = 1;     // k
  std::int64_t verified = 0;    // samples whose outputs were checked
  std::string stop;             // "precision", "device_budget", "wall_budget", "max_samples"
  double precision = 0;         // reached: half-width / median
  std::int64_t warmup_calls = 0;
};

// `random` picks the samples to verify. `progress(fraction, text)` is called between looks and may be empty.
Samples take_samples(const Protocol& protocol, const Subject& subject, Clock& clock, std::uint64_t random,
                     const std::function<void(double, const std::string&)>& progress);

}  // namespace syslab::measure
