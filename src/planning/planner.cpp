#include "planning/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

// Each no earlier than the one ahead of it.
std::vector<Seconds> in_order(const GradientPieces& pieces, ReadyTimes ready) {
  if (ready.size() != static_cast<std::size_t>(pieces.size())) {
    throw Error(ErrorKind::usage,
                fmt::format("{} times of readiness for {} gradients: one each is wanted", ready.size(), pieces.size()));
  }
  std::vector<Seconds> made(ready.begin(), ready.end());
  for (std::size_t i = 1; i < made.size(); ++i) made[i] = std::max(made[i], made[i - 1]);
  return made;
}

// T of every run of pieces, computed once: a schedule of five hundred tensors needs each a hundred times.
class TransferTable {
 public:
  TransferTable(const GradientPieces& pieces, const TransferCurve& curve)
      : size_(static_cast<std::size_t>(pieces.size())) {
    times_.resize(size_ * size_);
    for (int begin = 0; begin < pieces.size(); ++begin) {
      for (int end = begin + 1; end <= pieces.size(); ++end) {
        times_[static_cast<std::size_t>(begin) * size_ + static_cast<std::size_t>(end - 1)] =
            curve.time(pieces.bytes(begin, end));
      }
    }
  }
  Seconds operator()(std::size_t begin, std::size_t end) const { return times_[begin * size_ + end - 1]; }

 private:
  std::size_t size_;
  std::vector<Seconds> times_;
};

// Row k of the dynamic program: the earliest end of the first i pieces in k buckets, and where its last bucket begins.
struct Row {
  std::vector<Seconds> end;
  std::vector<int> begin;
};

Row next_row(const std::vector<Seconds>& before, std::span<const Seconds> ready, const TransferTable& transfer) {
  const std::size_t n = ready.size();
  Row row{std::vector<Seconds>(n + 1, kNever), std::vector<int>(n + 1, 0)};
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Seconds end = std::max(before[j], ready[i - 1]) + transfer(j, i);
      if (end < row.end[i]) {
        row.end[i] = end;
        row.begin[i] = static_cast<int>(j);
      }
    }
  }
  return row;
}

// The earliest end of all pieces in any number of buckets.
Seconds best_end(std::span<const Seconds> ready, const TransferTable& transfer) {
  std::vector<Seconds> end(ready.size() + 1, kNever);
  end[0] = Seconds(0);
  for (std::size_t i = 1; i < end.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) end[i] = std::min(end[i], std::max(end[j], ready[i - 1]) + transfer(j, i));
  }
  return end.back();
}

BucketSchedule read_plan(std::span<const Row> rows) {
  std::vector<int> ends;
  int end = static_cast<int>(rows.back().end.size()) - 1;
  for (std::size_t row = rows.size(); row-- > 0;) {
    ends.push_back(end);
    end = rows[row].begin[static_cast<std::size_t>(end)];
  }
  std::ranges::reverse(ends);
  return BucketSchedule(std::move(ends));
}

}  // namespace

std::vector<Seconds> ready_quantile(std::span<const std::vector<Seconds>> steps, double quantile) {
  if (steps.empty() || !(quantile >= 0 && quantile <= 1)) {
    throw Error(ErrorKind::usage, fmt::format("the {} quantile of {} steps: one step at least is wanted, and a number "
                                              "from 0 to 1",
                                              quantile, steps.size()));
  }
  std::vector<Seconds> made, column;
  for (std::size_t piece = 0; piece < steps.front().size(); ++piece) {
    column.clear();
    for (const std::vector<Seconds>& step : steps) {
      if (step.size() != steps.front().size()) {
        throw Error(ErrorKind::usage, fmt::format("steps of {} and of {} gradients are no steps of one model",
                                                  steps.front().size(), step.size()));
      }
      column.push_back(step[piece]);
    }
    // The smallest value that at least this share of the steps do not exceed.
    const double rank = std::ceil(quantile * static_cast<double>(column.size()));
    const auto at = column.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
    std::ranges::nth_element(column, at);
    made.push_back(*at);
  }
  return made;
}

BucketTimeline simulate(const BucketSchedule& schedule, const GradientPieces& pieces, ReadyTimes ready,
                        const TransferCurve& curve) {
  if (schedule.pieces() != pieces.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("a schedule of {} gradients for a model with {}", schedule.pieces(), pieces.size()));
  }
  const std::vector<Seconds> final = in_order(pieces, ready);
  BucketTimeline made;
  Seconds end{0};
  for (int bucket = 0; bucket < schedule.size(); ++bucket) {
    BucketTimes times{.bytes = pieces.bytes(schedule.begin(bucket), schedule.end(bucket))};
    times.ready = final[static_cast<std::size_t>(schedule.end(bucket)) - 1];
    times.start = std::max(end, times.ready);
    times.end = end = times.start + curve.time(times.bytes);
    made.buckets.push_back(times);
  }
  return made;
}

Seconds fluid_bound(const GradientPieces& pieces, ReadyTimes ready, double bytes_per_second) {
  if (!(bytes_per_second > 0)) {
    throw Error(ErrorKind::usage, fmt::format("a link of {} bytes a second carries nothing", bytes_per_second));
  }
  const std::vector<Seconds> final = in_order(pieces, ready);
  Seconds bound{0};
  double bytes = 0;  // of this piece and those behind it; padding may be left out by a schedule and counts for nothing
  for (int piece = pieces.size() - 1; piece >= 0; --piece) {
    bytes += static_cast<double>(pieces[piece].elements) * static_cast<double>(size_of(pieces.dtype()));
    bound = std::max(bound, final[static_cast<std::size_t>(piece)] + Seconds(bytes / bytes_per_second));
  }
  return bound;
}

Forecast schedule_buckets(const GradientPieces& pieces, ReadyTimes ready, const TransferCurve& curve, Seconds slack) {
  const std::vector<Seconds> final = in_order(pieces, ready);
  const TransferTable transfer(pieces, curve);
  const Seconds best = best_end(final, transfer);

  std::vector<Seconds> nothing(final.size() + 1, kNever);
  nothing[0] = Seconds(0);
  std::vector<Row> rows;
  // A schedule with this many buckets ends at exactly `best`, because the sums are the same, so the loop ends.
  do {
    rows.push_back(next_row(rows.empty() ? nothing : rows.back().end, final, transfer));
  } while (rows.back().end.back() > best + slack && rows.size() < final.size());

  BucketSchedule schedule = read_plan(rows);
  BucketTimeline timeline = simulate(schedule, pieces, ready, curve);
  return {std::move(schedule), std::move(timeline), best, fluid_bound(pieces, ready, curve.best_bytes_per_second())};
}

}  // namespace syslab::parallel
