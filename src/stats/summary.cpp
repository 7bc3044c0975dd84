#include "stats/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/distributions.hpp"

namespace syslab::stats {
namespace {

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Interval interval_of_sorted(std::span<const double> sorted, double median, double rho, double confidence) {
  if (sorted.empty()) {
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    return {kNothing, kNothing};
  }
  const std::size_t rank = std::max<std::size_t>(median_rank(sorted.size(), confidence), 1);
  Interval interval{sorted[rank - 1], sorted[sorted.size() - rank]};
  if (rho > 0) {
    const double widening = std::sqrt((1 + rho) / (1 - rho));
    // Samples that hang together count as fewer; fewer than six know no more than their range.
    interval.low = std::max(median - widening * (median - interval.low), sorted.front());
    interval.high = std::min(median + widening * (interval.high - median), sorted.back());
  }
  return interval;
}

}  // namespace

double quantile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

double lag1_autocorrelation(std::span<const double> in_time_order) {
  if (in_time_order.size() < 3) return 0.0;
  const double mean = mean_of(in_time_order);
  double products = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < in_time_order.size(); ++i) {
    const double deviation = in_time_order[i] - mean;
    squares += deviation * deviation;
    if (i > 0) products += deviation * (in_time_order[i - 1] - mean);
  }
  return squares > 0.0 ? products / squares : 0.0;
}

Interval median_interval(std::span<const double> in_time_order, double confidence) {
  const std::vector<double> sorted = sorted_copy(in_time_order);
  return interval_of_sorted(sorted, quantile(sorted, 0.5), lag1_autocorrelation(in_time_order), confidence);
}

Summary summarize(std::span<const double> in_time_order) {
  Summary summary;
  summary.n = static_cast<std::int64_t>(in_time_order.size());
  if (in_time_order.empty()) {
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    summary.median = summary.mean = summary.standard_deviation = kNothing;
    summary.min = summary.q1 = summary.q3 = summary.max = kNothing;
    summary.median_95 = {kNothing, kNothing};
    return summary;
  }
  const std::vector<double> sorted = sorted_copy(in_time_order);
  summary.median = quantile(sorted, 0.5);
  summary.q1 = quantile(sorted, 0.25);
  summary.q3 = quantile(sorted, 0.75);
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.mean = mean_of(in_time_order);
  if (sorted.size() > 1) {
    double squares = 0.0;
    for (const double value : sorted) squares += (value - summary.mean) * (value - summary.mean);
    summary.standard_deviation = std::sqrt(squares / static_cast<double>(sorted.size() - 1));
  }
  summary.median_95 = interval_of_sorted(sorted, summary.median, lag1_autocorrelation(in_time_order), 0.95);
  return summary;
}

}  // namespace syslab::stats
