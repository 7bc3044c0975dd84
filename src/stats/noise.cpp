#include "stats/noise.hpp"

#include <algorithm>
#include <cmath>

#include "stats/dependence.hpp"
#include "stats/distributions.hpp"
#include "stats/summary.hpp"

namespace syslab::stats {
namespace {

constexpr std::size_t kFewest = 6;
constexpr std::size_t kShapeFrom = 12;

// A long series, halved by averaging neighbours until it is short enough for all pairs of its values.
std::vector<double> thin(std::span<const double> in_time_order) {
  constexpr std::size_t kMost = 400;
  std::vector<double> values(in_time_order.begin(), in_time_order.end());
  while (values.size() > kMost) {
    const std::size_t half = values.size() / 2;
    for (std::size_t i = 0; i < half; ++i) values[i] = (values[2 * i] + values[2 * i + 1]) / 2;
    values.resize(half);
  }
  return values;
}

double interquartile_range(std::span<const double> sorted) { return quantile(sorted, 0.75) - quantile(sorted, 0.25); }

bool is_bimodal(std::span<const double> sorted) {
  const std::size_t first = sorted.size() / 10;
  const std::size_t last = sorted.size() - 1 - first;
  std::size_t at = first;  // the widest gap lies between `at` and `at + 1`
  for (std::size_t i = first; i < last; ++i) {
    if (sorted[i + 1] - sorted[i] > sorted[at + 1] - sorted[at]) at = i;
  }
  const double gap = sorted[at + 1] - sorted[at];
  const double spread =
      std::max(interquartile_range(sorted.first(at + 1)), interquartile_range(sorted.subspan(at + 1)));
  return gap > 3 * spread && gap > 0.01 * std::abs(quantile(sorted, 0.5));
}

// Kendall's S against time, with its normal approximation (Mann 1945; ties make it smaller and the test milder).
double trend_p(std::span<const double> values) {
  double s = 0;
  for (std::size_t j = 1; j < values.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) s += (values[j] > values[i]) - (values[j] < values[i]);
  }
  const auto n = static_cast<double>(values.size());
  const double deviation = std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  const double z = std::max(std::abs(s) - 1, 0.0) / deviation;
  return 2 * normal_cdf(-z);
}

// The median of the slopes of all pairs of samples (Theil 1950, Sen 1968).
double slope_of(std::span<const double> values) {
  std::vector<double> slopes;
  slopes.reserve(values.size() * (values.size() - 1) / 2);
  for (std::size_t j = 1; j < values.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
  }
  std::sort(slopes.begin(), slopes.end());
  return quantile(slopes, 0.5);
}

bool is_drifting(std::span<const double> in_time_order, double median) {
  const std::vector<double> values = thin(in_time_order);
  const double over_the_run = slope_of(values) * static_cast<double>(values.size() - 1);
  return std::abs(over_the_run) > 0.01 * std::abs(median) && trend_p(values) < 0.01;
}

}  // namespace

std::vector<std::string> noise_labels(std::span<const double> in_time_order) {
  std::vector<std::string> labels;
  if (in_time_order.size() < kFewest) labels.emplace_back("few_samples");
  if (in_time_order.size() < kShapeFrom) return labels;
  std::vector<double> sorted(in_time_order.begin(), in_time_order.end());
  std::sort(sorted.begin(), sorted.end());
  if (is_bimodal(sorted)) labels.emplace_back("bimodal");
  if (is_drifting(in_time_order, quantile(sorted, 0.5))) labels.emplace_back("drifting");
  if (corrected_lag1_autocorrelation(in_time_order) > 0.5) labels.emplace_back("autocorrelated");
  return labels;
}

}  // namespace syslab::stats
