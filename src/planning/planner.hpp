// Which buckets are best, from two things that are measured: when each gradient is final, and how long a reduction of
// so many bytes takes.
//
//   const Forecast forecast = schedule_buckets(pieces, ready, curve);
//   forecast.schedule; forecast.timeline.exposed(); forecast.bound;
//
// The model: one channel that takes buckets in their order, each when it is final and the one before is through:
//
//   start(k) = max(end(k−1), ready of the bucket's last piece)      end(k) = start(k) + T(bytes of k)
//
// A prefix that ends earlier never makes the rest end later. So the best schedule of the first i pieces is that of some
// first j and one bucket more (dynamic programming, exact for any T ≥ 0). What the model leaves out: computing and
// communicating slow each other down while both run.
#pragma once

#include <span>
#include <vector>

#include "planning/bucket_schedule.hpp"
#include "planning/transfer_curve.hpp"

namespace syslab::parallel {

// When each piece is final, from the start of the backward pass. One that is said to be final before a piece ahead of
// it counts as final with that one.
using ReadyTimes = std::span<const Seconds>;

// What is planned for when steps differ: by piece, the `quantile` (0.9: late in one step of ten) over the steps.
// Error(usage) for none, or for steps of different lengths.
std::vector<Seconds> ready_quantile(std::span<const std::vector<Seconds>> steps, double quantile = 0.9);

struct BucketTimes {
  std::int64_t bytes = 0;
  Seconds ready{}, start{}, end{};
};

struct BucketTimeline {
  std::vector<BucketTimes> buckets;

  Seconds busy() const {  // the channel
    Seconds sum{};
    for (const BucketTimes& one : buckets) sum += one.end - one.start;
    return sum;
  }
  Seconds backward_end() const { return buckets.back().ready; }
  Seconds end() const { return buckets.back().end; }
  Seconds exposed() const { return end() - backward_end(); }  // what the step is longer for communicating
};

// Error(usage) unless the schedule, the pieces and the ready times are of as many pieces.
BucketTimeline simulate(const BucketSchedule& schedule, const GradientPieces& pieces, ReadyTimes ready,
                        const TransferCurve& curve);

// No bucketing of whole pieces ends its communication earlier: that of no overhead at the best bandwidth ever measured,
// max over j of (ready_j + bytes of pieces j and later / w).
Seconds fluid_bound(const GradientPieces& pieces, ReadyTimes ready, double bytes_per_second);

struct Forecast {
  BucketSchedule schedule;
  BucketTimeline timeline;  // of the schedule
  Seconds best_end{};       // of any schedule
  Seconds bound{};          // fluid_bound(): of any link as fast
};

// The schedule with the earliest end of communication, more precisely: among the schedules that end at most `slack`
// later, those with the fewest buckets (each bucket costs host time and disturbs kernels a little, which the model
// ignores), and of these the one that ends first.
Forecast schedule_buckets(const GradientPieces& pieces, ReadyTimes ready, const TransferCurve& curve,
                          Seconds slack = Seconds(1e-4));

}  // namespace syslab::parallel
