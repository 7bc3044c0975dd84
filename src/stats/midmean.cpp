#include "stats/midmean.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stats/not_a_number.hpp"

namespace syslab::stats {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> result(values.begin(), values.end());
  std::sort(result.begin(), result.end());
  return result;
}

// Added in pairs from the ends to the middle, so that the mean of −x is exactly −(mean of x).
double mean(std::span<const double> sorted) {
  double sum = 0;
  const std::size_t n = sorted.size();
  for (std::size_t i = 0; i < n / 2; ++i) sum += sorted[i] + sorted[n - 1 - i];
  if (n % 2 == 1) sum += sorted[n / 2];
  return sum / static_cast<double>(n);
}

}  // namespace

double midmean(std::span<const double> values) {
  if (values.empty()) return kNotANumber;
  const std::vector<double> all = sorted(values);
  const std::size_t aside = all.size() / 4;
  return mean(std::span(all).subspan(aside, all.size() - 2 * aside));
}

double midmean_variance(std::span<const double> values) {
  if (values.size() < 2) return kNotANumber;
  std::vector<double> all = sorted(values);
  const std::size_t aside = all.size() / 4;
  const std::size_t kept = all.size() - 2 * aside;
  for (double& value : all) value = std::clamp(value, all[aside], all[aside + kept - 1]);
  const double centre = mean(all);
  double squares = 0;
  for (const double value : all) squares += (value - centre) * (value - centre);
  return static_cast<double>(all.size()) * squares / static_cast<double>(kept * (kept - 1));
}

}  // namespace syslab::stats
