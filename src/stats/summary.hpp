// Order statistics of a series of samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syslab::stats {

// Quantile p in [0, 1] by linear interpolation between order statistics (Hyndman & Fan 1996, type 7). NaN when empty.
double quantile(std::span<const double> sorted, double p);

struct Interval {
  double low = 0, high = 0;
};

// Distribution-free interval of the median from order statistics (binomial ranks), at least `confidence`; widened about
// the median by √((1+ρ)/(1−ρ)) when the lag-1 autocorrelation ρ of `in_time_order` is positive. Never wider
// than [min, max], which is also what too small an n for the confidence gets.
Interval median_interval(std::span<const double> in_time_order, double confidence = 0.95);

double lag1_autocorrelation(std::span<const double> in_time_order);

struct Summary {
  std::int64_t n = 0;
  double median = 0, mean = 0, standard_deviation = 0;  // n − 1 in the denominator; 0 when n = 1
  double min = 0, q1 = 0, q3 = 0, max = 0;
  Interval median_95;
};
Summary summarize(std::span<const double> in_time_order);

}  // namespace syslab::stats
