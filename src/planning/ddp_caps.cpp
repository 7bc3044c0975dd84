#include "planning/ddp_caps.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace syslab::parallel {
namespace {

std::vector<std::int64_t> candidates(std::int64_t whole) {
  std::vector<std::int64_t> limits;
  for (int half = 0;; ++half) {
    limits.push_back(static_cast<std::int64_t>(std::llround(65536.0 * std::pow(2.0, 0.5 * half))));
    if (limits.back() >= whole) return limits;
  }
}

}  // namespace

BucketSchedule schedule_as_ddp(const GradientPieces& pieces, std::int64_t first, std::int64_t cap) {
  std::vector<int> ends;
  int begin = 0;
  for (int piece = 0; piece < pieces.size(); ++piece) {
    if (pieces.bytes(begin, piece + 1) < (ends.empty() ? first : cap) && piece + 1 < pieces.size()) continue;
    ends.push_back(piece + 1);
    begin = piece + 1;
  }
  return BucketSchedule(std::move(ends));
}

DdpCaps ddp_with(std::int64_t first, std::int64_t cap, const GradientPieces& pieces, ReadyTimes ready,
                 const TransferCurve& curve) {
  BucketSchedule schedule = schedule_as_ddp(pieces, first, cap);
  BucketTimeline timeline = simulate(schedule, pieces, ready, curve);
  return {first, cap, std::move(schedule), std::move(timeline)};
}

DdpCaps best_ddp_caps(const GradientPieces& pieces, ReadyTimes ready, const TransferCurve& curve, Seconds slack) {
  const std::vector<std::int64_t> limits = candidates(pieces.bytes());
  std::vector<DdpCaps> all;
  for (const std::int64_t first : limits) {
    for (const std::int64_t cap : limits) all.push_back(ddp_with(first, cap, pieces, ready, curve));
  }
  const auto end = [](const DdpCaps& it) { return it.timeline.end(); };
  const Seconds best = std::ranges::min(all, {}, end).timeline.end();
  std::erase_if(all, [&](const DdpCaps& it) { return it.timeline.end() > best + slack; });
  return std::ranges::min(all, {}, [&](const DdpCaps& it) { return std::pair(it.schedule.size(), end(it)); });
}

}  // namespace syslab::parallel
