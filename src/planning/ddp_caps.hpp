// The best that PyTorch's DistributedDataParallel can be told: it takes no schedule, only two limits.
#pragma once

#include "planning/planner.hpp"

namespace syslab::parallel {

// Buckets as its reducer makes them once it knows the order in which gradients come: a bucket is closed when it has
// reached its limit, `first` for the first and `cap` for all others (compute_bucket_assignment_by_size in PyTorch's
// reducer.cpp). So buckets are larger than their limits.
BucketSchedule schedule_as_ddp(const GradientPieces& pieces, std::int64_t first, std::int64_t cap);

struct DdpCaps {
  std::int64_t first = 0, cap = 0;  // bytes
  BucketSchedule schedule;
  BucketTimeline timeline;
};

inline constexpr std::int64_t kDdpFirst = 1 << 20, kDdpCap = 25 << 20;  // PyTorch's own

DdpCaps ddp_with(std::int64_t first, std::int64_t cap, const GradientPieces& pieces, ReadyTimes ready,
                 const TransferCurve& curve);

// Of all limits that make a difference, up to 22 gradients; of more, of limits among these and some a factor √2 apart
// from 64 KiB to the whole: those with the earliest end of communication; of those that end at most `slack` later, the
// ones with the fewest buckets, as schedule_buckets() chooses.
DdpCaps best_ddp_caps(const GradientPieces& pieces, ReadyTimes ready, const TransferCurve& curve,
                      Seconds slack = Seconds(1e-4));

// `cap` as bucket_cap_mb in as few digits as make the same buckets.
double told_cap(const DdpCaps& caps, const GradientPieces& pieces);

}  // namespace syslab::parallel
