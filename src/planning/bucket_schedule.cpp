#include "planning/bucket_schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab::parallel {

BucketSchedule::BucketSchedule(std::vector<int> ends) : ends_(std::move(ends)) {
  int begin = 0;
  for (const int end : ends_) {
    if (end <= begin) {
      throw Error(ErrorKind::usage,
                  fmt::format("a schedule of buckets that end at pieces [{}]: each must end behind the "
                              "one before it and hold a piece",
                              fmt::join(ends_, " ")));
    }
    begin = end;
  }
  if (ends_.empty()) throw Error(ErrorKind::usage, "a schedule without buckets: at least one is wanted");
}

int BucketSchedule::bucket_of(int piece) const {
  return static_cast<int>(std::ranges::upper_bound(ends_, piece) - ends_.begin());
}

std::string BucketSchedule::text() const { return fmt::format("{}", fmt::join(ends_, " ")); }

BucketSchedule BucketSchedule::parse(std::string_view text) {
  std::vector<int> ends;
  for (const std::string& word : split(text, ' ')) {
    int end = 0;
    const auto [rest, fault] = std::from_chars(word.data(), word.data() + word.size(), end);
    if (fault != std::errc() || rest != word.data() + word.size()) {
      throw Error(ErrorKind::usage,
                  fmt::format("'{}' is no schedule of buckets: the pieces at which they end are wanted, "
                              "as in '3 5 9'",
                              text));
    }
    ends.push_back(end);
  }
  return BucketSchedule(std::move(ends));
}

std::int64_t bucket_mb_bytes(double bucket_mb) {
  constexpr double kMostMb = 0x1p42;  // 2^62 bytes
  const double bytes = std::floor(bucket_mb * 0x1p20);
  if (!(bytes >= 1) || bytes > kMostMb * 0x1p20) {
    throw Error(ErrorKind::usage, fmt::format("a bucket of at most {} MB (2^20 bytes); at least one byte and at most "
                                              "{:.0f} MB are wanted",
                                              bucket_mb, kMostMb));
  }
  return static_cast<std::int64_t>(bytes);
}

BucketSchedule schedule_one_each(const GradientPieces& pieces) {
  std::vector<int> ends(static_cast<std::size_t>(pieces.size()));
  std::iota(ends.begin(), ends.end(), 1);
  return BucketSchedule(std::move(ends));
}

BucketSchedule schedule_flat(const GradientPieces& pieces) { return BucketSchedule({pieces.size()}); }

BucketSchedule schedule_by_cap(const GradientPieces& pieces, std::int64_t cap) {
  return schedule_by_caps(pieces, std::span(&cap, 1));
}

BucketSchedule schedule_by_caps(const GradientPieces& pieces, std::span<const std::int64_t> caps) {
  if (caps.empty() || std::ranges::any_of(caps, [](std::int64_t cap) { return cap < 1; })) {
    throw Error(ErrorKind::usage, fmt::format("buckets of at most [{}] bytes: one positive limit at least is wanted",
                                              fmt::join(caps, ", ")));
  }
  std::vector<int> ends;
  int begin = 0;
  for (int piece = 1; piece < pieces.size(); ++piece) {
    const std::int64_t cap = caps[std::min(ends.size(), caps.size() - 1)];
    if (pieces.bytes(begin, piece + 1) <= cap) continue;
    ends.push_back(piece);
    begin = piece;
  }
  ends.push_back(pieces.size());
  return BucketSchedule(std::move(ends));
}

BucketSchedule schedule_by_count(const GradientPieces& pieces, int buckets) {
  if (buckets < 1) {
    throw Error(ErrorKind::usage, fmt::format("{} buckets are asked for; at least 1 is wanted", buckets));
  }
  const int count = std::min(buckets, pieces.size());
  std::vector<int> ends;
  int begin = 0;
  for (int bucket = 1; bucket < count; ++bucket) {
    // The cut nearest to that of equal buckets, among those that leave at least one piece for every later bucket.
    const double ideal = static_cast<double>(pieces.bytes()) * bucket / count;
    const auto off = [&](int end) { return std::abs(static_cast<double>(pieces.bytes(0, end)) - ideal); };
    int best = begin + 1;
    for (int end = best + 1; end <= pieces.size() - (count - bucket); ++end) {
      if (off(end) < off(best)) best = end;
    }
    ends.push_back(best);
    begin = best;
  }
  ends.push_back(pieces.size());
  return BucketSchedule(std::move(ends));
}

}  // namespace syslab::parallel
