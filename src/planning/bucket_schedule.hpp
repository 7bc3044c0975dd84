// Which gradients travel together: a schedule cuts the pieces, in their order, into buckets. Each bucket is one stretch
// of the arena and one collective operation, begun when its last piece is final.
//
//   const BucketSchedule schedule = schedule_by_cap(pieces, bucket_mb_bytes(25));
//   for (int bucket = 0; bucket < schedule.size(); ++bucket) reduce(schedule.begin(bucket), schedule.end(bucket));
//
// Which schedule is best is planning/planner.hpp's business.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planning/pieces.hpp"

namespace syslab::parallel {

class BucketSchedule {
 public:
  // `ends`: one past the last piece of each bucket, ascending; the last is the number of pieces. Error(usage)
  // otherwise.
  explicit BucketSchedule(std::vector<int> ends);

  int size() const { return static_cast<int>(ends_.size()); }  // buckets
  int pieces() const { return ends_.back(); }
  int begin(int bucket) const { return bucket == 0 ? 0 : end(bucket - 1); }
  int end(int bucket) const { return ends_[static_cast<std::size_t>(bucket)]; }
  int bucket_of(int piece) const;

  std::string text() const;                       // "3 5 9": the ends, which say all
  static BucketSchedule parse(std::string_view);  // Error(usage) for what is no schedule's text
  bool operator==(const BucketSchedule&) const = default;

 private:
  std::vector<int> ends_;
};

// A limit in units of 2^20 bytes, as the axis `bucket_mb` counts, rounded down to whole bytes. Error(usage) unless it
// holds one byte at least and 2^62 at most.
std::int64_t bucket_mb_bytes(double bucket_mb);

BucketSchedule schedule_one_each(const GradientPieces& pieces);
BucketSchedule schedule_flat(const GradientPieces& pieces);

// Buckets as full as they can be without passing `cap` bytes, padding inside a bucket counted; only a piece that is
// larger by itself is a bucket above the limit, alone. (PyTorch closes a bucket once it has reached the limit, so that
// its buckets are larger.)
BucketSchedule schedule_by_cap(const GradientPieces& pieces, std::int64_t cap);
// A limit for each bucket in turn, from the first to become final; the last one holds for all that follow.
BucketSchedule schedule_by_caps(const GradientPieces& pieces, std::span<const std::int64_t> caps);
// So many buckets (as many as pieces, if there are fewer), about equally large.
BucketSchedule schedule_by_count(const GradientPieces& pieces, int buckets);

}  // namespace syslab::parallel
