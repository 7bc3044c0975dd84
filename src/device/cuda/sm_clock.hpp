// The clock rate of a GPU's multiprocessors during a stretch of work, from the GPU itself: tiny kernels before and
// after it read each multiprocessor's cycle counter and the GPU's nanosecond timer. NVML would report some moment
// within the last 20 to 100 ms; this covers exactly the stretch.
//
//   SmClock clock(stream, 16);
//   clock.begin(0); … work … clock.end(0);
//   const std::vector<std::optional<double>> hertz = clock.read();   // waits for the stream
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/buffer.hpp"
#include "device/cuda/kernels.hpp"
#include "device/device.hpp"

namespace syslab::device {

// Of stamps by multiprocessor, before and after. Left out is where a counter did not go forward, or faster than any
// GPU's: that happens where another process had the GPU in between.
std::optional<double> median_rate(std::span<const kernels::ClockStamp> begin, std::span<const kernels::ClockStamp> end);

// On the CPU's stream it does nothing and reads nothing.
class SmClock {
 public:
  // Room for `stretches` stretches between two calls of read().
  SmClock(Stream stream, int stretches);

  void begin(int stretch);  // queues the stamps
  void end(int stretch);

  // Average of each stretch in Hz, median over the multiprocessors seen both before and after it; none if there were
  // none, or if the stretch was too short for the GPU's timer, which advances in steps of up to a microsecond. Waits
  // for the stream and forgets all stamps.
  std::vector<std::optional<double>> read();

 private:
  void stamp(int index);
  Stream stream_;
  int stretches_ = 0, multiprocessors_ = 0;
  Buffer stamps_;  // [stretch][begin, end][multiprocessor]
};

}  // namespace syslab::device
