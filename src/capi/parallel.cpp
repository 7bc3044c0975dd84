// Data parallelism through the C interface: schedules, plans, owners and rows, of planning/.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "capi/guarded.hpp"
#include "capi/syslab.h"
#include "core/error.hpp"
#include "planning/bucket_schedule.hpp"
#include "planning/owners.hpp"
#include "planning/planner.hpp"

namespace syslab::capi {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20, kMostTensors = 1 << 24;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;  // of all together: sums stay in range

template <typename T>
std::span<T> array(const char* name, T* first, std::int64_t count, std::int64_t most) {
  if (count < 0 || count > most) {
    throw Error(ErrorKind::usage, fmt::format("there are {} of `{}`; from 0 to {} are taken", count, name, most));
  }
  if (first == nullptr && count > 0) throw Error(ErrorKind::usage, fmt::format("`{}` is NULL", name));
  return {first, static_cast<std::size_t>(count)};
}

// The planner's elements are of two bytes.
parallel::GradientPieces pieces_of(const std::int64_t* bytes, std::int64_t count) {
  std::vector<parallel::Piece> pieces;
  std::int64_t at = 0;
  for (const std::int64_t one : array("bytes", bytes, count, kMostTensors)) {
    if (one < 2 || one % 2 != 0 || one > kMostBytes - 2 * at) {
      throw Error(ErrorKind::usage,
                  fmt::format("gradient {} has {} bytes: an even number from 2 on is taken, and 2^56 together",
                              pieces.size(), one));
    }
    pieces.push_back({.name = std::to_string(pieces.size()), .first = at, .elements = one / 2});
    at += one / 2;
  }
  return {std::move(pieces), DType::f16};
}

void write(const parallel::BucketSchedule& schedule, std::int64_t* ends, std::int64_t* buckets) {
  if (ends == nullptr || buckets == nullptr) throw Error(ErrorKind::usage, "`ends` and `buckets` take the answer");
  for (int bucket = 0; bucket < schedule.size(); ++bucket) ends[bucket] = schedule.end(bucket);
  *buckets = schedule.size();
}

std::vector<Seconds> seconds(const char* name, const double* values, std::int64_t count) {
  std::vector<Seconds> made;
  for (const double one : array(name, values, count, kMostTensors)) {
    if (!std::isfinite(one) || one < 0) {
      throw Error(ErrorKind::usage, fmt::format("{}[{}] is {}; seconds from 0 on are taken", name, made.size(), one));
    }
    made.emplace_back(one);
  }
  return made;
}

}  // namespace
}  // namespace syslab::capi

using namespace syslab;        // NOLINT: what follows is the C interface itself
using namespace syslab::capi;  // NOLINT

extern "C" {

int syslab_bucket_schedule(const int64_t* bytes, int64_t count, int64_t limit, int64_t* ends, int64_t* buckets) {
  return guarded("syslab_bucket_schedule", [&] {
    const parallel::GradientPieces pieces = pieces_of(bytes, count);
    write(limit < 0    ? parallel::schedule_flat(pieces)
          : limit == 0 ? parallel::schedule_one_each(pieces)
                       : parallel::schedule_by_cap(pieces, limit),
          ends, buckets);
  });
}

int syslab_bucket_plan(const int64_t* bytes, const double* ready, int64_t count, const int64_t* sizes,
                       const double* times, int64_t points, int64_t* ends, int64_t* buckets, double* exposed) {
  return guarded("syslab_bucket_plan", [&] {
    const parallel::GradientPieces pieces = pieces_of(bytes, count);
    const std::vector<Seconds> final_at = seconds("ready", ready, count), took = seconds("times", times, points);
    std::vector<parallel::TransferPoint> measured;
    for (const std::int64_t size : array("sizes", sizes, points, kMostTensors)) {
      measured.push_back({.bytes = size, .time = took[measured.size()]});
    }
    const parallel::Forecast forecast =
        parallel::schedule_buckets(pieces, final_at, parallel::TransferCurve(std::move(measured)));
    write(forecast.schedule, ends, buckets);
    if (exposed != nullptr) *exposed = forecast.timeline.exposed().count();
  });
}

int syslab_assign_owners(const int64_t* elements, int64_t count, int64_t* loads, int64_t ranks, int64_t* owners) {
  return guarded("syslab_assign_owners", [&] {
    const std::span<const std::int64_t> sizes = array("elements", elements, count, kMostTensors);
    const std::span<std::int64_t> held = array("loads", loads, ranks, kMostRanks);
    const std::span<std::int64_t> found = array("owners", owners, count, kMostTensors);
    if (held.empty()) throw Error(ErrorKind::usage, "there are 0 ranks; at least one is wanted");
    for (const std::int64_t one : sizes) {
      if (one < 0) throw Error(ErrorKind::usage, fmt::format("a tensor of {} elements; from 0 on are taken", one));
    }
    std::vector<std::int64_t> sums(held.begin(), held.end());
    const std::vector<int> chosen = parallel::assign_owners(sizes, sums);
    std::ranges::copy(sums, held.begin());
    std::ranges::copy(chosen, found.begin());
  });
}

int syslab_shard_rows(int64_t rows, int64_t ranks, int64_t rank, int64_t* first, int64_t* own, int64_t* padded) {
  return guarded("syslab_shard_rows", [&] {
    if (first == nullptr || own == nullptr || padded == nullptr) {
      throw Error(ErrorKind::usage, "`first`, `own` and `padded` take the answer");
    }
    if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks || rows > kMostBytes) {
      throw Error(
          ErrorKind::usage,
          fmt::format("{} rows for rank {} of {}; at most 2^56 rows and {} ranks are taken, and the rank is among them",
                      rows, rank, ranks, kMostRanks));
    }
    const parallel::RowPart part = parallel::rows_of(rows, static_cast<int>(ranks), static_cast<int>(rank));
    *first = part.first;
    *own = part.count;
    *padded = part.padded;
  });
}

uint32_t syslab_parallel_abi(void) { return SYSLAB_PARALLEL_ABI; }

}  // extern "C"
