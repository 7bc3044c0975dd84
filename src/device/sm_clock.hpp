// The clock rate of a GPU's multiprocessors during a stretch of work, from the GPU itself: a tiny kernel before and one
// after it read each multiprocessor's cycle counter and the GPU's nanoseconds. NVML would tell of some moment within
// the last 20 to 100 ms; this tells of the very stretch.
//
//   SmClock clock(stream, 16);
//   clock.begin(0); … work … clock.end(0);
//   const std::vector<std::optional<double>> hertz = clock.read();   // waits for the stream
#pragma once

#include <optional>
#include <vector>

#include "device/buffer.hpp"
#include "device/device.hpp"

namespace syslab::device {

// On the CPU's stream it does nothing and reads nothing.
class SmClock {
 public:
  // For `stretches` of them between two read().
  SmClock(Stream stream, int stretches);

  void begin(int stretch);  // queues the stamps
  void end(int stretch);

  // Average of each stretch in Hz, median over the multiprocessors that were met before and after it; none where none
  // was, or where the stretch was too short for the GPU's nanoseconds, which advance by up to a microsecond. Waits for
  // the stream and forgets all stamps.
  std::vector<std::optional<double>> read();

 private:
  void stamp(int index);
  Stream stream_;
  int stretches_ = 0, multiprocessors_ = 0;
  Buffer stamps_;  // [stretch][begin, end][multiprocessor]
};

}  // namespace syslab::device
