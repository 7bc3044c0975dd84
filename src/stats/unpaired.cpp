#include "stats/unpaired.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "stats/distributions.hpp"
#include "stats/not_a_number.hpp"

namespace syslab::stats {
namespace {

constexpr std::int64_t kFewestLaunches = 3;

struct LogMoments {
  double mean = 0, squared_error = 0, dof = 0;  // squared_error: of the mean
};

LogMoments log_moments(std::span<const double> medians, char side) {
  if (medians.empty())
    throw Error(ErrorKind::usage, std::string("a ratio was asked, but side ") + side + " has no launch");
  const auto n = static_cast<double>(medians.size());
  LogMoments moments;
  for (const double median : medians) {
    if (!(median > 0 && std::isfinite(median)))
      throw Error(ErrorKind::usage, std::string("a launch of side ") + side + " has the median " +
                                        std::to_string(median) + "; a ratio needs positive, finite ones");
    moments.mean += std::log(median) / n;
  }
  double squares = 0;
  for (const double median : medians) {
    const double deviation = std::log(median) - moments.mean;
    squares += deviation * deviation;
  }
  moments.dof = n - 1;
  moments.squared_error = squares / moments.dof / n;
  return moments;
}

bool too_few(const UnpairedEstimate& estimate) {
  return estimate.launches_a < kFewestLaunches || estimate.launches_b < kFewestLaunches;
}

}  // namespace

UnpairedEstimate unpaired_estimate(std::span<const double> launch_medians_a, std::span<const double> launch_medians_b,
                                   double confidence) {
  const LogMoments a = log_moments(launch_medians_a, 'A');
  const LogMoments b = log_moments(launch_medians_b, 'B');
  UnpairedEstimate estimate;
  estimate.launches_a = static_cast<std::int64_t>(launch_medians_a.size());
  estimate.launches_b = static_cast<std::int64_t>(launch_medians_b.size());
  estimate.log_ratio = b.mean - a.mean;
  if (too_few(estimate)) {
    estimate.interval_95 = {kNotANumber, kNotANumber};
    estimate.standard_error = estimate.dof = estimate.p_t = kNotANumber;
    return estimate;
  }
  const double squared_error = a.squared_error + b.squared_error;
  estimate.standard_error = std::sqrt(squared_error);
  // Satterthwaite 1946; medians that do not vary at all leave 0/0, where either side's own count is the safe one.
  estimate.dof = squared_error > 0
                     ? squared_error * squared_error /
                           (a.squared_error * a.squared_error / a.dof + b.squared_error * b.squared_error / b.dof)
                     : std::min(a.dof, b.dof);
  const double half_width = student_t_quantile((1 + confidence) / 2, estimate.dof) * estimate.standard_error;
  estimate.interval_95 = {estimate.log_ratio - half_width, estimate.log_ratio + half_width};
  estimate.p_t = p_of_distance(std::abs(estimate.log_ratio), estimate);
  return estimate;
}

double p_beyond(const UnpairedEstimate& estimate, double delta) {
  if (too_few(estimate)) return kNotANumber;
  const double distance = std::abs(estimate.log_ratio) - std::log1p(delta);
  return distance <= 0 ? 1 : p_of_distance(distance, estimate);
}

}  // namespace syslab::stats
