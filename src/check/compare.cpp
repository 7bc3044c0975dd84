#include "check/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "check/guard.hpp"
#include "check/kernels.hpp"
#include "check/tally.hpp"
#include "device/memory.hpp"

namespace syslab::check {
namespace {

std::vector<std::int64_t> coordinates(std::int64_t index, const Shape& shape) {
  std::vector<std::int64_t> where(static_cast<std::size_t>(shape.rank()));
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    where[static_cast<std::size_t>(dim)] = index % shape[dim];
    index /= shape[dim];
  }
  return where;
}

const void* element(const ConstTensorView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int dim = view.shape.rank() - 1; dim >= 0; --dim) {
    offset += index % view.size(dim) * view.stride(dim);
    index /= view.size(dim);
  }
  return static_cast<const std::byte*>(view.data) + offset * static_cast<std::int64_t>(size_of(view.dtype));
}

struct Sizes {
  explicit Sizes(const Shape& shape) : rank(shape.rank()) {
    for (int dim = 0; dim < rank; ++dim) size[dim] = shape[dim];
  }
  std::int64_t size[Tally::kRank] = {};
  int rank;
};

Comparison comparison_of(const Tally& tally, const Shape& shape) {
  Comparison result;
  result.elements = shape.elements();
  result.compared = tally.compared;
  result.wrong = tally.wrong;
  result.unwritten = tally.unwritten;
  result.worst_ratio = tally.worst_ratio;
  result.max_error = tally.max_error;
  if (tally.worst >= 0) result.worst_index = coordinates(tally.worst, shape);
  if (tally.wrong > 0) {
    result.wrong_first.assign(tally.first, tally.first + shape.rank());
    result.wrong_last.assign(tally.last, tally.last + shape.rank());
  }
  // A tensor with elements of which none is checked is not a success.
  result.passed = tally.wrong == 0 && (tally.compared > 0 || shape.elements() == 0);
  return result;
}

// What was found and expected at the worst element.
void set_worst(Comparison& result, double found, double expected, double bound) {
  result.found = found;
  result.expected = expected;
  result.worst_tolerance = bound;
  result.worst_error = Tally::error_of(found, expected);
}

void require_as_many(std::size_t elements, std::size_t expectations, std::size_t tolerances) {
  if (expectations == elements && (tolerances == elements || tolerances == 1)) return;
  throw Error(ErrorKind::internal, fmt::format("compare: {} elements found, {} expectations and {} tolerances given",
                                               elements, expectations, tolerances));
}

double element_at(const void* data, std::int64_t index, DType dtype, device::Stream stream) {
  std::array<std::byte, sizeof(double)> bytes{};
  device::copy_now(bytes.data(),
                   static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(size_of(dtype)),
                   size_of(dtype), stream);
  return to_doubles(ConstTensorView(bytes.data(), dtype, Shape{1})).front();
}

}  // namespace

Comparison compare(const ConstTensorView& found, std::span<const double> expected, std::span<const double> tolerance) {
  const auto elements = static_cast<std::size_t>(found.elements());
  require_as_many(elements, expected.size(), tolerance.size());
  const std::vector<double> values = to_doubles(found);
  const Sizes sizes(found.shape);
  const auto bound_of = [&](std::size_t i) { return tolerance.size() == 1 ? tolerance[0] : tolerance[i]; };
  Tally tally;
  std::int64_t made_of_poison = 0, nans = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    const auto index = static_cast<std::int64_t>(i);
    // Only a NaN can be the poison, so the address is computed for few elements.
    const void* const nan = std::isnan(values[i]) ? element(found, index) : nullptr;
    if (nan != nullptr) ++nans;
    const bool poisoned = nan != nullptr && is_poison(nan, found.dtype);
    if (nan != nullptr && is_made_of_poison(nan, found.dtype)) ++made_of_poison;
    tally.add(index, values[i], expected[i], bound_of(i), poisoned, sizes.size, sizes.rank);
  }
  Comparison result = comparison_of(tally, found.shape);
  result.made_of_poison = made_of_poison;
  result.nans = nans;
  if (tally.worst >= 0) {
    const auto worst = static_cast<std::size_t>(tally.worst);
    set_worst(result, values[worst], expected[worst], bound_of(worst));
  }
  return result;
}

Comparison compare_there(const ConstTensorView& found, const ExpectedThere& expected, device::Stream stream) {
  const std::int64_t elements = found.elements();
  require_as_many(static_cast<std::size_t>(elements), static_cast<std::size_t>(elements),
                  static_cast<std::size_t>(expected.tolerances));
  if (stream.kind == device::Kind::cpu) {
    return compare(found, {expected.value, static_cast<std::size_t>(elements)},
                   {expected.tolerance, static_cast<std::size_t>(expected.tolerances)});
  }
  const Sizes sizes(found.shape);
  const Tally tally = kernels::compare(found, poison_of(found.dtype), expected.value, expected.tolerance,
                                       expected.tolerances == 1, sizes.size, sizes.rank, stream);
  Comparison result = comparison_of(tally, found.shape);
  if (tally.worst >= 0) {
    set_worst(result, element_at(found.data, tally.worst, found.dtype, stream),
              element_at(expected.value, tally.worst, DType::f64, stream),
              element_at(expected.tolerance, expected.tolerances == 1 ? 0 : tally.worst, DType::f64, stream));
  }
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
  if (elements == 0) return fmt::format("{}: it has no elements", name);
  if (compared == 0) {
    std::string text = fmt::format("{}: every value that it is compared with is NaN", name);
    if (nans > 0) text += fmt::format(", and so are {} of the {} found", nans, elements);
    return text;
  }
  const std::string place = fmt::format("{}[{}]", name, fmt::join(worst_index, ", "));
  const std::string shown = fmt::format("{:.9g}", found), wanted = fmt::format("{:.9g}", expected);
  std::string text = shown != wanted ? fmt::format("{}: found {}, expected {}", place, shown, wanted)
                                     : fmt::format("{}: found {:.17g}, expected {:.17g}", place, found, expected);
  text += fmt::format(" ± {:.3g}", worst_tolerance);
  if (std::isfinite(worst_ratio)) text += fmt::format(" ({:.3g} × the bound)", worst_ratio);
  text += passed ? fmt::format("; all {} within their bounds", compared)
                 : fmt::format("; {} of {} wrong, within [{}]", wrong, compared, wrong_box());
  if (unwritten > 0) text += fmt::format(", {} never written", unwritten);
  return text;
}

}  // namespace syslab::check
