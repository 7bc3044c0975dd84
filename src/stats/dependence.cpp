#include "stats/dependence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace syslab::stats {
namespace {

class Autocovariance {
 public:
  explicit Autocovariance(std::span<const double> in_time_order) : series_(in_time_order) {
    const double sum = std::accumulate(series_.begin(), series_.end(), 0.0);
    mean_ = sum / static_cast<double>(series_.size());
  }
  double at(std::size_t lag) const {
    double products = 0;
    for (std::size_t i = lag; i < series_.size(); ++i) products += (series_[i] - mean_) * (series_[i - lag] - mean_);
    return products;
  }

 private:
  std::span<const double> series_;
  double mean_ = 0;
};

double corrected(double rho, double n) { return std::min(rho + (1 + 3 * rho) / n, 1 - 1 / n); }

// 2 Σ Γ_k − 1 over pairs Γ_k of neighbouring autocorrelations, as long as they stay positive, none counted above the
// one before.
double initial_sequence_sum(std::span<const double> series) {
  const Autocovariance covariance(series);
  const double variance = covariance.at(0);
  double sum = 0;
  double before = std::numeric_limits<double>::infinity();
  for (std::size_t lag = 0; lag + 1 < series.size(); lag += 2) {
    const double pair = (covariance.at(lag) + covariance.at(lag + 1)) / variance;
    if (pair <= 0) break;
    before = std::min(before, pair);
    sum += before;
  }
  return 2 * sum - 1;
}

}  // namespace

double lag1_autocorrelation(std::span<const double> in_time_order) {
  if (in_time_order.size() < 3) return 0.0;
  const Autocovariance covariance(in_time_order);
  const double variance = covariance.at(0);
  return variance > 0.0 ? covariance.at(1) / variance : 0.0;
}

double corrected_lag1_autocorrelation(std::span<const double> in_time_order) {
  if (in_time_order.size() < 3) return 0.0;
  const auto n = static_cast<double>(in_time_order.size());
  const double rho = lag1_autocorrelation(in_time_order);
  return rho == 0.0 ? 0.0 : corrected(rho, n);
}

double variance_inflation(std::span<const double> in_time_order) {
  const double rho = corrected_lag1_autocorrelation(in_time_order);
  if (rho <= 0) return 1;
  const auto n = static_cast<double>(in_time_order.size());
  const double of_first_order = (1 + rho) / (1 - rho);
  if (rho <= 1 / std::sqrt(n)) return of_first_order;
  const double sum = initial_sequence_sum(in_time_order);
  return std::max(of_first_order, sum / (1 - std::min(sum / n, 0.9)));
}

}  // namespace syslab::stats
