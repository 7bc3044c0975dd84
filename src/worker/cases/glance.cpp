#include "worker/cases/glance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace syslab::worker {
namespace {

constexpr double kBounds = 4;
constexpr double kShareOfSize = 0.05;
constexpr double kTrifle = 1.0 / 16;  // of the bound
constexpr std::size_t kStretch = 64;  // elements

double difference(double a, double b) {
  if (a == b) return 0;  // infinities too
  const double apart = std::abs(a - b);
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

}  // namespace

std::optional<Far> far_from(const ConstTensorView& output, const Glimpse& glimpse, double bound) {
  const std::size_t count = glimpse.values.size(), width = size_of(output.dtype);
  const auto* first = static_cast<const std::byte*>(output.data) + static_cast<std::size_t>(glimpse.first) * width;
  const std::vector<double> found =
      to_doubles(ConstTensorView(first, output.dtype, Shape{static_cast<std::int64_t>(count)}));
  std::optional<Far> furthest;
  double largest = 0;
  for (std::size_t begin = 0; begin < count; begin += kStretch) {
    const std::size_t end = std::min(count, begin + kStretch);
    double apart = 0, size = 0, most = 0;
    std::size_t where = begin;
    for (std::size_t i = begin; i < end; ++i) {
      const double one = difference(found[i], glimpse.values[i]);
      apart += one * one;
      if (std::isfinite(glimpse.values[i])) size += glimpse.values[i] * glimpse.values[i];
      if (one > most) most = one, where = i;
    }
    const bool beyond = most > kBounds * bound;
    const bool another = std::sqrt(apart) > kShareOfSize * std::sqrt(size) && most > kTrifle * bound;
    if (!(beyond || another) || most <= largest) continue;
    largest = most;
    furthest = {glimpse.first + static_cast<std::int64_t>(where), found[where], glimpse.values[where]};
  }
  return furthest;
}

}  // namespace syslab::worker
