#include "measure/burst.hpp"

#include <algorithm>

#include "stats/summary.hpp"

namespace syslab::measure {
namespace {

constexpr int kMostSamples = 1 << 20;

// What another process times meets arguments of its own at each call, and making them may take a thousand times as long
// as the call: 2 ms of calls were ten seconds. Fewer of them then, and the blocks say what is known.
constexpr Nanoseconds kMostOnTheWall = std::chrono::milliseconds(100);

int calls_within(Nanoseconds budget, Nanoseconds each) {
  return static_cast<int>(std::clamp<Nanoseconds::rep>(budget / std::max(each, Nanoseconds(1)), 1, kMostSamples));
}

}  // namespace

Burst::Burst(const Protocol& protocol, const Subject& subject, Device& device, Clock& clock, std::uint64_t random,
             Nanoseconds length)
    : rig_(protocol, subject, device, clock, random) {
  rig_.warm_up();
  const int most_calls = subject.self_time ? calls_within(kMostOnTheWall, rig_.wall_estimate()) : kMostSamples;
  rig_.group_at_most(most_calls);
  const Nanoseconds sample = std::max(rig_.call_estimate(), Nanoseconds(1)) * rig_.calls_per_sample();
  const int most = std::max(most_calls / rig_.calls_per_sample(), 1);
  samples_ = static_cast<int>(std::clamp<Nanoseconds::rep>((length + sample / 2) / sample, 1, most));
}

BurstTime Burst::take() {
  BurstTime burst;
  std::vector<double> clocks;
  int left = samples_;
  while (left > 0) {
    for (const Window& window : rig_.time_block(left)) {
      --left;
      burst.samples.push_back(window.seconds_per_call());
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
