#include "parallel/zero/flat_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "parallel/ddp/wire_buffer.hpp"

namespace syslab::parallel {

FlatShards::FlatShards(const GradientPieces& pieces, BucketSchedule schedule, std::int64_t arena_elements, int ranks)
    : schedule_(std::move(schedule)), ranks_(ranks) {
  if (schedule_.pieces() != pieces.size()) {
    throw Error(ErrorKind::usage, fmt::format("a schedule for {} gradients, and there are {}: it is another model's",
                                              schedule_.pieces(), pieces.size()));
  }
  if (ranks < 1 || arena_elements % ranks != 0 || arena_elements < pieces[pieces.size() - 1].end()) {
    throw Error(ErrorKind::usage,
                fmt::format("an arena of {} elements for {} ranks, whose last gradient ends at {}: it must reach there "
                            "and divide evenly",
                            arena_elements, ranks, pieces[pieces.size() - 1].end()));
  }
  for (int i = 0; i < pieces.size(); ++i) {
    if (pieces[i].first % ranks == 0) continue;
    throw Error(ErrorKind::usage,
                fmt::format("'{}' begins at element {}, no multiple of the {} ranks: lay the model out for so many",
                            pieces[i].name, pieces[i].first, ranks));
  }
  for (int bucket = 0; bucket < schedule_.size(); ++bucket)
    bucket_first_.push_back(pieces.first(schedule_.begin(bucket)));
  bucket_first_.push_back(arena_elements);
  begin_in_shard_ = bucket_first_.front() / ranks_;
}

Stretch FlatShards::bucket(int bucket) const {
  const std::int64_t first = bucket_first_[index(bucket)];
  return {first, bucket_first_[index(bucket) + 1] - first};
}

Stretch FlatShards::slice(int bucket, int rank) const {
  const Stretch all = this->bucket(bucket);
  const std::int64_t count = all.count / ranks_;
  return {all.first + rank * count, count};
}

std::int64_t FlatShards::largest_bucket() const {
  std::int64_t largest = 0;
  for (int one = 0; one < buckets(); ++one) largest = std::max(largest, bucket(one).count);
  return largest;
}

}  // namespace syslab::parallel
