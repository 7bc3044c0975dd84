// One side of a paired comparison: prepared once, then timed for a short burst in each of its turns. The caller decides
// the order of turns (A B B A …).
//
//   Burst burst(protocol, subject, device, steady_clock(), seed, std::chrono::milliseconds(20));
//   const BurstTime took = burst.take();
#pragma once

#include <optional>
#include <vector>

#include "measure/rig.hpp"

namespace syslab::measure {

struct BurstTime {
  double seconds_per_call = 0;  // median of `samples`, as of a run: a sample that another process cut into is no news
  std::vector<double> samples;  // seconds per call, a value a sample, in order
  std::optional<double> clock_hz;  // of the device, median of the samples' where it tells
};

class Burst {
 public:
  // Warms up, then fixes how many calls a burst of `length` is: a whole number of samples, at least one; of another
  // process's calls no more than take a tenth of a second on the wall, with new content for each. Everything is
  // borrowed and must outlive this; of the protocol counts what says how to warm up, what a sample is and how large a
  // share of them is verified. Unsupported as require_launch().
  Burst(const Protocol& protocol, const Subject& subject, Device& device, Clock& clock, std::uint64_t random,
        Nanoseconds length);

  // One burst, on content that was fresh before it, a rotation further each time. Outputs of samples chosen by chance,
  // and of the first burst's last, are verified after it; what verification throws passes through.
  BurstTime take();

  std::int64_t calls() const { return static_cast<std::int64_t>(samples_) * rig_.calls_per_sample(); }
  double seconds_per_call() const { return Seconds(rig_.call_estimate()).count(); }     // as the warm-up found it
  double seconds_on_the_wall() const { return Seconds(rig_.wall_estimate()).count(); }  // of a call, with its content
  int calls_per_sample() const { return rig_.calls_per_sample(); }
  std::int64_t verified() const { return rig_.verified(); }
  std::int64_t warmup_calls() const { return rig_.warmup_calls(); }
  std::optional<bool> clock_settled() const { return rig_.clock_settled(); }
  bool uses_graphs() const { return rig_.uses_graphs(); }
  const std::string& why_not_captured() const { return rig_.why_not_captured(); }

 private:
  Rig rig_;
  int samples_ = 1;  // of one burst
};

}  // namespace syslab::measure
