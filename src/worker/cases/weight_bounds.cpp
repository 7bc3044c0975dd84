#include "worker/cases/weight_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/index.hpp"

namespace syslab::worker {
namespace {

constexpr double kFurther = 8, kRoundings = 16;  // of the bounds of weights
constexpr double kUnit = 0x1p-24;                // of fp32

}  // namespace

WeightBounds compare_weights(std::span<const float> found, std::span<const float> alone,
                             std::span<const float> otherwise, std::span<const std::int64_t> elements) {
  const auto square = [](double value) { return value * value; };
  double apart_of_all = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) apart_of_all += square(double{alone[i]} - otherwise[i]);
  WeightBounds worst;
  std::size_t begin = 0;
  for (std::size_t parameter = 0; parameter < elements.size(); ++parameter) {
    const std::size_t end = begin + at(elements[parameter]);
    double distance = 0, apart = 0, size = 0;
    for (std::size_t i = begin; i < end; ++i) {
      distance += square(double{found[i]} - alone[i]);
      apart += square(double{alone[i]} - otherwise[i]);
      size += square(alone[i]);
    }
    const double share = apart_of_all * static_cast<double>(end - begin) / static_cast<double>(alone.size());
    const double bound = kFurther * std::sqrt(std::max(apart, share)) + kRoundings * kUnit * std::sqrt(size);
    const double ratio = distance == 0 ? 0 : std::sqrt(distance) / bound;
    if (!(ratio <= worst.worst))
      worst = {std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio, parameter};
    begin = end;
  }
  return worst;
}

}  // namespace syslab::worker
