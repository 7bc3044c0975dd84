#include "check/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "check/guard.hpp"

namespace syslab::check {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double error_of(double found, double expected) {
  if (std::isnan(found)) return kInfinity;
  if (found == expected) return 0;  // equal infinities as well
  return std::abs(found - expected);
}

double ratio_of(double error, double tolerance) {
  if (error == 0) return 0;
  if (!std::isfinite(error) || !(tolerance > 0)) return kInfinity;  // a NaN tolerance allows nothing
  return error / tolerance;
}

std::vector<std::int64_t> coordinates(std::int64_t index, const Shape& shape) {
  std::vector<std::int64_t> where(static_cast<std::size_t>(shape.rank()));
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    where[static_cast<std::size_t>(dim)] = index % shape[dim];
    index /= shape[dim];
  }
  return where;
}

void widen_box(const std::vector<std::int64_t>& where, Comparison& result) {
  if (result.wrong_first.empty()) {
    result.wrong_first = result.wrong_last = where;
    return;
  }
  for (std::size_t dim = 0; dim < where.size(); ++dim) {
    result.wrong_first[dim] = std::min(result.wrong_first[dim], where[dim]);
    result.wrong_last[dim] = std::max(result.wrong_last[dim], where[dim]);
  }
}

const void* element(const ConstTensorView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int dim = view.shape.rank() - 1; dim >= 0; --dim) {
    offset += index % view.size(dim) * view.stride(dim);
    index /= view.size(dim);
  }
  return static_cast<const std::byte*>(view.data) + offset * static_cast<std::int64_t>(size_of(view.dtype));
}

}  // namespace

Comparison compare(const ConstTensorView& found, std::span<const double> expected, std::span<const double> tolerance) {
  const auto elements = static_cast<std::size_t>(found.elements());
  if (expected.size() != elements || (tolerance.size() != elements && tolerance.size() != 1)) {
    throw Error(ErrorKind::internal, fmt::format("compare: {} elements found, {} expectations and {} tolerances given",
                                                 elements, expected.size(), tolerance.size()));
  }
  const std::vector<double> values = to_doubles(found);
  Comparison result;
  std::int64_t worst = -1;
  for (std::size_t i = 0; i < elements; ++i) {
    if (std::isnan(expected[i])) continue;
    ++result.compared;
    const double bound = tolerance.size() == 1 ? tolerance[0] : tolerance[i];
    const double error = error_of(values[i], expected[i]);
    const double ratio = ratio_of(error, bound);
    const auto index = static_cast<std::int64_t>(i);
    // Only a NaN can be the poison, so the address is worked out for few.
    if (std::isnan(values[i]) && is_poison(element(found, index), found.dtype)) ++result.unwritten;
    if (ratio > 1) {
      ++result.wrong;
      widen_box(coordinates(index, found.shape), result);
    }
    result.max_error = std::max(result.max_error, error);
    if (worst >= 0 && ratio <= result.worst_ratio) continue;
    worst = index;
    result.worst_ratio = ratio;
    result.worst_error = error;
    result.worst_tolerance = bound;
    result.found = values[i];
    result.expected = expected[i];
  }
  if (worst >= 0) result.worst_index = coordinates(worst, found.shape);
  // Nothing asked of a tensor that has elements is no success.
  result.passed = result.wrong == 0 && (result.compared > 0 || elements == 0);
  return result;
}

std::string Comparison::wrong_box() const {
  std::string text;
  for (std::size_t dim = 0; dim < wrong_first.size(); ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string(wrong_first[dim]);
    if (wrong_last[dim] != wrong_first[dim]) text += "…" + std::to_string(wrong_last[dim]);
  }
  return text;
}

std::string Comparison::describe(std::string_view name) const {
  if (compared == 0) return fmt::format("{}: no element was compared", name);
  const std::string place = fmt::format("{}[{}]", name, fmt::join(worst_index, ", "));
  std::string text = fmt::format("{}: found {:.9g}, expected {:.9g} ± {:.3g}", place, found, expected, worst_tolerance);
  if (std::isfinite(worst_ratio)) text += fmt::format(" ({:.3g} × the bound)", worst_ratio);
  text += passed ? fmt::format("; all {} within their bounds", compared)
                 : fmt::format("; {} of {} wrong, within [{}]", wrong, compared, wrong_box());
  if (unwritten > 0) text += fmt::format(", {} never written", unwritten);
  return text;
}

}  // namespace syslab::check
