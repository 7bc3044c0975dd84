// How an arena is divided among ranks in flat ranges: each bucket of a schedule is cut into as many equal slices as
// there are ranks, and rank r owns slice r of each, wherever that begins and ends in a tensor.
//
//   bucket          0              1                  2
//   arena     [··|··|··|··][····|····|····|····][···|···|···|···]      one reduce-scatter and one all-gather a bucket,
//   of rank 1     [··]          [····]              [···]              both in place
//   its shard [··][····][···]                                          its moments, one behind the other
//
// Pieces begin at multiples of the number of ranks, so that every bucket divides; the padding that this costs is all
// that a rank holds beyond its share.
#pragma once

#include "core/tensor.hpp"
#include "planning/bucket_schedule.hpp"

namespace syslab::parallel {

// Elements [first, first + count).
struct Stretch {
  std::int64_t first = 0, count = 0;

  std::int64_t end() const { return first + count; }
};

class FlatShards {
 public:
  // `arena_elements`: all of the arena, padding behind the last piece included. Error(usage) naming what does not
  // divide: a piece that begins at no multiple of `ranks`, or the arena's end; and a schedule of other pieces.
  FlatShards(const GradientPieces& pieces, BucketSchedule schedule, std::int64_t arena_elements, int ranks);

  const BucketSchedule& schedule() const { return schedule_; }
  int buckets() const { return schedule_.size(); }
  int ranks() const { return ranks_; }

  // Of the arena: up to where the next bucket begins.
  Stretch bucket(int bucket) const;
  Stretch slice(int bucket, int rank) const;  // of the arena, too
  // A rank's slices one behind the other: where one begins in them, and how many elements they are together.
  std::int64_t first_in_shard(int bucket) const { return bucket_first_[index(bucket)] / ranks_ - begin_in_shard_; }
  std::int64_t shard_elements() const { return (bucket_first_.back() - bucket_first_.front()) / ranks_; }
  std::int64_t largest_bucket() const;  // elements

 private:
  static std::size_t index(int at) { return static_cast<std::size_t>(at); }

  BucketSchedule schedule_;
  int ranks_;
  std::vector<std::int64_t> bucket_first_;  // of each bucket, and the arena's end
  std::int64_t begin_in_shard_;
};

}  // namespace syslab::parallel
