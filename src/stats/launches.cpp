#include "stats/launches.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stats/distributions.hpp"
#include "stats/not_a_number.hpp"

namespace syslab::stats {
namespace {

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Var(median) / Var(mean) of k normal values; π/2 in the limit.
double variance_of_median(double k, bool odd) { return std::numbers::pi / 2 * k / (k + (odd ? 0.5 : 1.3)); }

}  // namespace

LaunchesSummary summarize_launches(std::span<const std::vector<double>> launches) {
  LaunchesSummary summary;
  std::vector<const std::vector<double>*> full;
  bool positive = true;
  for (const std::vector<double>& launch : launches) {
    if (launch.empty()) continue;
    full.push_back(&launch);
    std::vector<double> copy = launch;
    summary.medians.push_back(median_of(copy));
    summary.samples += static_cast<std::int64_t>(launch.size());
    for (const double value : launch) positive = positive && value > 0;
  }
  summary.launches = static_cast<std::int64_t>(full.size());
  if (full.empty()) {
    summary.median = kNotANumber;
    summary.median_95 = {kNotANumber, kNotANumber};
    return summary;
  }
  std::vector<double> medians = summary.medians;
  summary.median = median_of(medians);
  if (full.size() == 1) {
    summary.median_95 = median_interval(*full.front());
    return summary;
  }
  summary.between_launches = true;
  const auto k = static_cast<double>(medians.size());
  if (positive) {
    for (double& median : medians) median = std::log(median);
  }
  double mean = 0;
  for (const double median : medians) mean += median / k;
  double squares = 0;
  for (const double median : medians) squares += (median - mean) * (median - mean);
  const double error_of_mean = std::sqrt(squares / (k - 1) / k);
  const double half_width =
      student_t_quantile(0.975, k - 1) * std::sqrt(variance_of_median(k, full.size() % 2 == 1)) * error_of_mean;
  if (positive) {
    summary.median_95 = {summary.median * std::exp(-half_width), summary.median * std::exp(half_width)};
  } else {
    summary.median_95 = {summary.median - half_width, summary.median + half_width};
  }
  return summary;
}

}  // namespace syslab::stats
