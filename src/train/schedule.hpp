// The learning rate over a run: linear warm-up, then a cosine from the largest rate to the smallest.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/error.hpp"

namespace syslab::train {

// At step t (from 0):
//   t < warmup    largest · t / warmup
//   t ≥ cycle     smallest
//   between       smallest + ½ (1 + cos(π (t − warmup) / (cycle − warmup))) (largest − smallest)
struct CosineSchedule {
  double largest = 1e-3, smallest = 1e-4;
  std::int64_t warmup = 0, cycle = 0;  // steps; the last step at the smallest rate is counted from 0, too

  double at(std::int64_t step) const {
    if (step < warmup) return largest * static_cast<double>(step) / static_cast<double>(warmup);
    if (step >= cycle) return smallest;
    const double done = static_cast<double>(step - warmup) / static_cast<double>(cycle - warmup);
    return smallest + 0.5 * (1 + std::cos(std::numbers::pi * done)) * (largest - smallest);
  }
};

// Error(usage) for rates that are no finite numbers, negative or the wrong way round, and for a cycle that ends before
// the warm-up does.
inline void validate(const CosineSchedule& schedule) {
  if (!(schedule.smallest >= 0) || !(schedule.largest >= schedule.smallest) || !std::isfinite(schedule.largest)) {
    throw Error(
        ErrorKind::usage,
        fmt::format("learning rates from {} down to {}: they must be finite, and the smallest neither negative nor "
                    "above the largest",
                    schedule.largest, schedule.smallest));
  }
  if (schedule.warmup < 0 || schedule.cycle < schedule.warmup) {
    throw Error(
        ErrorKind::usage,
        fmt::format("a warm-up of {} steps in a cycle of {}: the cycle must be at least as long, neither negative",
                    schedule.warmup, schedule.cycle));
  }
}

}  // namespace syslab::train
