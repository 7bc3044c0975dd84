#include "property_tests/verdict.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace syslab::property {
namespace {

// Position of the first wrong row in a tile, for the largest usual tile with that row at its edge: faults of masks and
// tails begin at tiles' edges.
std::string tile_of(std::int64_t row) {
  for (const std::int64_t tile : {128, 64, 32, 16}) {
    if (row >= tile && row % tile == 0) return fmt::format(" (row {} begins tile {} of {})", row, row / tile, tile);
  }
  return {};
}

// Where NaN comes from, as far as the bits that the call itself wrote tell.
std::string origin_of_nan(const check::Comparison& comparison) {
  if (comparison.made_of_poison > 0) {
    return fmt::format(", {} computed from what stood in the output before the call", comparison.made_of_poison);
  }
  if (!std::isnan(comparison.found) || comparison.unwritten > 0) return {};
  return ", all of them written: NaN was computed";
}

// The first wrong element is the worst, and a NaN is worse than any number.
FindingKind kind_of(const check::Comparison& comparison) {
  if (comparison.unwritten > 0) return FindingKind::unwritten;
  if (comparison.compared == 0) return FindingKind::not_finite;  // of another call's answer, which is NaN throughout
  const bool expects_number = std::isfinite(comparison.expected);
  return expects_number && !std::isfinite(comparison.found) ? FindingKind::not_finite : FindingKind::wrong_value;
}

void judge(std::string_view what, const check::Comparison& comparison, check::Observation& observation, int row_dim,
           bool as_written) {
  if (comparison.compared > 0) observation.record(comparison.worst_error, comparison.worst_tolerance);
  if (comparison.passed) return;
  const auto dim = static_cast<std::size_t>(row_dim);
  const bool has_rows = dim < comparison.wrong_first.size();
  fail(comparison.describe(what) + (as_written ? origin_of_nan(comparison) : std::string{}) +
           (has_rows ? tile_of(comparison.wrong_first[dim]) : std::string{}),
       kind_of(comparison));
}

}  // namespace

void fail(const std::string& why, FindingKind kind, std::optional<Lack> lacks, FaultDetails details) {
  throw FoundFault(ErrorKind::check, kind, why, {}, std::move(lacks), std::move(details));
}

void demand_within(std::string_view what, const ConstTensorView& found, std::span<const double> expected,
                   std::span<const double> tolerance, check::Observation& observation, int row_dim) {
  if (found.elements() > 0) judge(what, check::compare(found, expected, tolerance), observation, row_dim, true);
}

void demand_within(std::string_view what, std::span<const double> found, const Shape& shape,
                   std::span<const double> expected, std::span<const double> tolerance, check::Observation& observation,
                   int row_dim) {
  if (shape.elements() == 0) return;
  const ConstTensorView view(found.data(), DType::f64, shape);
  judge(what, check::compare(view, expected, tolerance), observation, row_dim, false);
}

void demand_equal(std::string_view what, std::span<const double> found, const Shape& shape,
                  std::span<const double> expected, check::Observation& observation, int row_dim) {
  const double nothing[] = {0.0};
  demand_within(what, found, shape, expected, nothing, observation, row_dim);
}

void demand_unharmed(const check::GuardedTensor& tensor) {
  if (const auto violation = tensor.violation()) fail(*violation, FindingKind::write_outside);
}

void demand_untouched(const check::GuardedTensor& tensor, std::span<const double> values, int row_dim) {
  demand_unharmed(tensor);
  check::Observation ignored;
  demand_equal("after the call: input " + tensor.spec().name, to_doubles(tensor.view()), tensor.spec().shape, values,
               ignored, row_dim);
}

void demand_written(const check::GuardedTensor& tensor) {
  demand_unharmed(tensor);
  if (tensor.unwritten() == 0) return;
  // Every finite number will do: what is left is the poison (and what else is no number, if the kernel made any).
  const std::vector<double> any(static_cast<std::size_t>(tensor.spec().shape.elements()), 0.0);
  const double anywhere[] = {std::numeric_limits<double>::max()};
  const check::Comparison forgotten = check::compare(tensor.view(), any, anywhere);
  fail(fmt::format("{}: {} of {} elements never written, within [{}]", tensor.spec().name, forgotten.unwritten,
                   forgotten.compared, forgotten.wrong_box()),
       FindingKind::unwritten);
}

}  // namespace syslab::property
