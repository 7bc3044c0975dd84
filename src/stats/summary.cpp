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

// How much wider the interval of n samples is for their variance being inflated: √v, and a t with fewer degrees of
// freedom.
double widening(double inflation, std::size_t n, double confidence) {
  if (inflation <= 1 || n < 3) return 1;
  const double p = (1 + confidence) / 2;
  const double effective = static_cast<double>(n) / inflation;
  return std::sqrt(inflation) * student_t_quantile(p, std::max(effective - 1, 1.0)) /
         student_t_quantile(p, static_cast<double>(n) - 1);
}

Interval interval_of_sorted(std::span<const double> sorted, double median, double inflation, double confidence) {
  if (sorted.empty()) {
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    return {kNothing, kNothing};
  }
  const std::size_t rank = std::max<std::size_t>(median_rank(sorted.size(), confidence), 1);
  const Interval interval{sorted[rank - 1], sorted[sorted.size() - rank]};
  const double factor = widening(inflation, sorted.size(), confidence);
  if (factor == 1) return interval;  // to the bit
  return {std::max(median - factor * (median - interval.low), sorted.front()),
          std::min(median + factor * (interval.high - median), sorted.back())};
}

}  // namespace

double quantile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

Interval median_interval(std::span<const double> in_time_order, double confidence) {
  const std::vector<double> sorted = sorted_copy(in_time_order);
  return interval_of_sorted(sorted, quantile(sorted, 0.5), variance_inflation(in_time_order), confidence);
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
  summary.median_95 = interval_of_sorted(sorted, summary.median, variance_inflation(in_time_order), 0.95);
  return summary;
}

}  // namespace syslab::stats
