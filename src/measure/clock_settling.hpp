// Whether a GPU's clock has stopped rising: a warm-up by time alone ends too early on a card that was idle, whose clock
// climbs for longer than short calls take.
#pragma once

#include <optional>
#include <vector>

#include "core/text/units.hpp"

namespace syslab::measure {

// Takes readings of the clock, some while apart, as the device tells them.
class ClockSettling {
 public:
  static constexpr Nanoseconds kBetween = std::chrono::milliseconds(50);  // readings: a driver renews its own as often
  static constexpr std::size_t kPairs = 2;  // the last two are held against the two before them: 150 ms in all
  static constexpr double kWithin = 0.01;   // clocks move in steps of 15 MHz, 0.8 % of 1.98 GHz

  // True when a reading is due. The first is at once.
  bool due(Nanoseconds now) const { return !last_ || now - *last_ >= kBetween; }
  // Nothing: the device does not tell, and no warm-up waits for it.
  void take(Nanoseconds now, std::optional<double> hz);

  bool tells() const { return !readings_.empty(); }
  bool knows() const { return readings_.size() >= 2 * kPairs; }
  // The mean of the last two readings is within kWithin of that of the two before. A clock that a power cap shakes up
  // and down has settled, one that climbs has not. False before there are as many.
  bool settled() const;

 private:
  std::optional<Nanoseconds> last_;
  std::vector<double> readings_;  // Hz, in order
};

}  // namespace syslab::measure
