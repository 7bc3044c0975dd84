// Takes samples of a subject until a stop rule holds. Clock, device and sleeper are interfaces, so that the sampler is
// tested on a fake device with a known distribution.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/clock.hpp"
#include "measure/device.hpp"
#include "measure/protocol.hpp"
#include "measure/subject.hpp"

namespace syslab::measure {

struct Samples {
  std::vector<double> seconds;      // per call: a sample of k calls is divided by k
  std::vector<double> clocks_hz;    // of the device during each sample; empty unless it told of all of them
  std::vector<std::int64_t> flags;  // one a sample; empty when no sample has any
  int calls_per_sample = 1;         // k
  bool graphs = false;              // the calls of a sample were replayed as a captured graph
  std::string why_not_captured;     // that was tried and failed
  std::int64_t verified = 0;        // calls with outputs that were compared whole
  std::string stop;                 // "precision", "count", "device_budget", "wall_budget", "max_samples"
  double precision = 0;             // reached: half-width of the median's 95 % interval / median
  std::int64_t warmup_calls = 0;
  std::vector<double> warmup_seconds;  // of the first of them, in order
  Nanoseconds in_windows{}, wall{};    // wall without verification
  int pauses = 0;                      // to let the device cool down
  std::optional<bool> clock_settled;   // when the warm-up ended (rig.hpp)
  GpuState before, after;              // of the device: behind the warm-up, behind the last sample
};

// What samples are taken with.
struct Instruments {
  Device& device;
  Clock& clock = steady_clock();
  Sleeper& sleeper = thread_sleeper();
};

// `random` picks the samples to verify. `progress(fraction, text)` is called between looks and may be empty.
// Unsupported when the protocol wants what the device has not.
Samples take_samples(const Protocol& protocol, const Subject& subject, const Instruments& instruments,
                     std::uint64_t random, const std::function<void(double, const std::string&)>& progress);

}  // namespace syslab::measure
