#include "planning/ddp_caps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

namespace syslab::parallel {
namespace {

constexpr std::size_t kMostFirsts = 64, kMostCaps = 256;

// In order, each once; of more than `most` as many, evenly spaced.
void thin_out(std::vector<std::int64_t>& limits, std::size_t most) {
  std::ranges::sort(limits);
  limits.erase(std::ranges::unique(limits).begin(), limits.end());
  if (limits.size() <= most) return;
  for (std::size_t i = 0; i < most; ++i) limits[i] = limits[i * (limits.size() - 1) / (most - 1)];
  limits.resize(most);
}

// A factor √2 apart, from 64 KiB to the whole.
void add_grid(std::vector<std::int64_t>& limits, std::int64_t whole) {
  for (int half = 0;; ++half) {
    limits.push_back(static_cast<std::int64_t>(std::llround(65536.0 * std::pow(2.0, 0.5 * half))));
    if (limits.back() >= whole) return;
  }
}

// A limit acts as the next larger sum of gradients does: of those from the first on for the first bucket, of any run
// for the others.
std::vector<std::int64_t> firsts(const GradientPieces& pieces) {
  std::vector<std::int64_t> limits;
  for (int end = 1; end <= pieces.size(); ++end) limits.push_back(pieces.bytes(0, end));
  thin_out(limits, kMostFirsts);
  add_grid(limits, pieces.bytes());
  return limits;
}

std::vector<std::int64_t> caps(const GradientPieces& pieces) {
  std::vector<std::int64_t> limits;
  for (int begin = 0; begin < pieces.size(); ++begin) {
    for (int end = begin + 1; end <= pieces.size(); ++end) limits.push_back(pieces.bytes(begin, end));
  }
  thin_out(limits, kMostCaps);
  add_grid(limits, pieces.bytes());
  return limits;
}

struct Tried {
  std::int64_t first = 0, cap = 0;
  int buckets = 0;
  Seconds end{};
};

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
  std::vector<Tried> all;
  const std::vector<std::int64_t> all_caps = caps(pieces);
  for (const std::int64_t first : firsts(pieces)) {
    for (const std::int64_t cap : all_caps) {
      const DdpCaps made = ddp_with(first, cap, pieces, ready, curve);
      all.push_back({first, cap, made.schedule.size(), made.timeline.end()});
    }
  }
  const Seconds best = std::ranges::min(all, {}, &Tried::end).end;
  std::erase_if(all, [&](const Tried& it) { return it.end > best + slack; });
  const Tried chosen = std::ranges::min(all, {}, [](const Tried& it) { return std::pair(it.buckets, it.end); });
  return ddp_with(chosen.first, chosen.cap, pieces, ready, curve);
}

double told_cap(const DdpCaps& caps, const GradientPieces& pieces) {
  constexpr double kMebi = 1 << 20;
  const double exact = static_cast<double>(caps.cap) / kMebi;
  for (int digits = 4; digits < 17; ++digits) {
    const double told = std::strtod(fmt::format("{:.{}g}", exact, digits).c_str(), nullptr);
    // As PyTorch makes bytes of it.
    if (schedule_as_ddp(pieces, caps.first, static_cast<std::int64_t>(told * kMebi)) == caps.schedule) return told;
  }
  return exact;
}

}  // namespace syslab::parallel
