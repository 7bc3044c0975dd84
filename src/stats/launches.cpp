#include "stats/launches.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "stats/distributions.hpp"

namespace syslab::stats {
namespace {

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

class Resampler {
 public:
  explicit Resampler(std::uint64_t seed) : generator_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(generator_() % n); }

  // Circular block bootstrap (Politis & Romano 1992), blocks of about n^(1/3) samples.
  double median(const std::vector<double>& launch) {
    const std::size_t n = launch.size();
    const auto block = static_cast<std::size_t>(std::ceil(std::cbrt(static_cast<double>(n))));
    drawn_.clear();
    while (drawn_.size() < n) {
      const std::size_t start = below(n);
      for (std::size_t i = 0; i < block && drawn_.size() < n; ++i) drawn_.push_back(launch[(start + i) % n]);
    }
    return median_of(drawn_);
  }

 private:
  std::mt19937_64 generator_;
  std::vector<double> drawn_;
};

}  // namespace

LaunchesSummary summarize_launches(std::span<const std::vector<double>> launches, std::uint64_t seed) {
  constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
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
  constexpr int kResamples = 2000;
  Resampler resampler(seed);
  double mean = 0;
  double squares = 0;
  for (int resample = 1; resample <= kResamples; ++resample) {
    medians.clear();
    for (std::size_t i = 0; i < full.size(); ++i)
      medians.push_back(resampler.median(*full[resampler.below(full.size())]));
    double figure = median_of(medians);
    if (positive) figure = std::log(figure);
    const double deviation = figure - mean;  // Welford's update
    mean += deviation / resample;
    squares += deviation * (figure - mean);
  }
  const auto k = static_cast<double>(full.size());
  const double half_width =
      student_t_quantile(0.975, k - 1) * std::sqrt(k / (k - 1)) * std::sqrt(squares / (kResamples - 1));
  if (positive) {
    summary.median_95 = {summary.median * std::exp(-half_width), summary.median * std::exp(half_width)};
  } else {
    summary.median_95 = {summary.median - half_width, summary.median + half_width};
  }
  return summary;
}

}  // namespace syslab::stats
