// Where timed work runs, as seen by the code that times it. The host is the trivial device: work is done when its call
// returns. A GPU queues windows between two events and reports their times a block at a time, so that it never idles
// between samples and its clocks stay stable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/nvml.hpp"
#include "core/text/units.hpp"
#include "measure/clock.hpp"

namespace syslab::measure {

// Bits of the flags of a window, and of the sample it becomes. A flagged sample stays a sample.
inline constexpr std::int64_t kSlowClock = 1;     // its clock rate was under 97 % of the median of all samples'
inline constexpr std::int64_t kHostInWindow = 2;  // the host was not done queueing when the device began
inline constexpr std::int64_t kPowerCapped = 4;   // these three: what held the device's clock down about then
inline constexpr std::int64_t kHot = 8;
inline constexpr std::int64_t kHardwareSlowdown = 16;

// The time of one window of work.
struct Window {
  Nanoseconds elapsed{};
  std::optional<double> told_seconds;  // by the implementation, of any size: what is reported, in place of `elapsed`
  std::optional<double> clock_hz;      // of the device within the window (cycles / time); not every device tells
  std::int64_t flags = 0;
  int calls = 1;  // that were timed together

  double seconds_per_call() const { return told_seconds.value_or(Seconds(elapsed).count()) / calls; }
};

// Work captured once and replayed without host launch cost.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;
};

struct Captured {
  std::unique_ptr<Graph> graph;
  std::string why;  // there is none
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;                // "CPU", for messages
  virtual std::uint64_t last_level_cache() const = 0;  // bytes that this process can fill
  virtual int most_windows() const = 0;                // that may be queued between two collect()

  // Times `work`, which queues on this device or works on the host. How long the host takes to queue it is no part of
  // the window: the device either holds the window back until all of it is queued, or has enough before it to do.
  virtual void queue_window(const std::function<void()>& work) = 0;
  // Waits for all streams of the device, also those that the work opened for itself, and returns the windows queued
  // since the last collect(), in order. A launch that failed is thrown here at the latest.
  virtual std::vector<Window> collect() = 0;
  virtual void synchronize() = 0;  // the same wait, with no windows to tell of
  // Queues a write over `bytes` that no input lies in: caches of that size forget what they held.
  virtual void flush(std::uint64_t bytes) = 0;

  virtual bool captures_graphs() const { return false; }
  // Runs `work` once to record it; what it launches is not executed. No graph, and why, when it cannot be captured.
  virtual Captured capture(const std::function<void()>& /*work*/) { return {nullptr, name() + " captures no graphs"}; }

  // Clocks, temperature and what holds clocks down, as the driver tells them now; empty where it tells nothing. Asking
  // takes less than a millisecond and disturbs no work.
  virtual GpuState state() const { return {}; }

  // Which flags cannot be observed here, and why; empty: all can.
  virtual std::string blind_to() const { return {}; }
};

// The CPU by `clock`. Its clock rate is not known: what /proc tells of it is a guess of the kernel's.
std::unique_ptr<Device> make_host_device(Clock& clock = steady_clock());
// Bytes of the last-level cache that this process can fill.
std::uint64_t host_last_level_cache();

}  // namespace syslab::measure
