#include "measure/burst.hpp"

#include <algorithm>

#include "stats/summary.hpp"

namespace syslab::measure {

Burst::Burst(const Protocol& protocol, const Subject& subject, Device& device, Clock& clock, std::uint64_t random,
             Nanoseconds length)
    : rig_(protocol, subject, device, clock, random) {
  rig_.warm_up();
  const Nanoseconds sample = std::max(rig_.call_estimate(), Nanoseconds(1)) * rig_.calls_per_sample();
  constexpr Nanoseconds::rep kMostSamples = 1 << 20;
  samples_ = static_cast<int>(std::clamp<Nanoseconds::rep>((length + sample / 2) / sample, 1, kMostSamples));
}

BurstTime Burst::take() {
  BurstTime burst;
  std::vector<double> clocks;
  int left = samples_;
  while (left > 0) {
    for (const Window& window : rig_.time_block(left)) {
      --left;
      burst.samples.push_back(Seconds(window.elapsed).count() / window.calls);
      if (window.clock_hz) clocks.push_back(*window.clock_hz);
    }
    rig_.verify(left == 0);
    rig_.refresh();
  }
  burst.seconds_per_call = stats::summarize(burst.samples).median;
  if (clocks.size() == burst.samples.size()) burst.clock_hz = stats::summarize(clocks).median;
  return burst;
}

}  // namespace syslab::measure
