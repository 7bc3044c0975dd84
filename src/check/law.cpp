#include "check/law.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace syslab::check {
namespace {

// The ratio of an error to its bound; a NaN on either side counts as beyond any bound.
double ratio(double error, double bound) {
  if (std::isnan(error) || std::isnan(bound)) return std::numeric_limits<double>::infinity();
  if (error == 0) return 0;
  if (std::isinf(bound)) return std::isinf(error) ? std::numeric_limits<double>::infinity() : 0;
  return bound > 0 ? error / bound : std::numeric_limits<double>::infinity();
}

}  // namespace

void Observation::record(double error, double bound) {
  if (worst_error && ratio(error, bound) <= ratio(*worst_error, *tolerance)) return;
  worst_error = error;
  tolerance = bound;
}

}  // namespace syslab::check
