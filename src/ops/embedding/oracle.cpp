#include "ops/embedding/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/rounding.hpp"

namespace syslab::embedding {

Expected forward_oracle(const Problem& problem, std::span<const std::int64_t> ids, const ConstTensorView& table) {
  const std::vector<double> values = to_doubles(table);
  const bool narrowed = problem.table_dtype != problem.x_dtype;
  const double unit = narrowed ? unit_roundoff(problem.x_dtype) : 0;
  const double least = narrowed ? unit * smallest_normal(problem.x_dtype) : 0;
  const auto elements = static_cast<std::size_t>(problem.rows * problem.dim);
  Expected found{std::vector<double>(elements, std::numeric_limits<double>::quiet_NaN()),
                 std::vector<double>(elements)};
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const std::int64_t id = ids[static_cast<std::size_t>(i)];
    if (id < 0 || id >= problem.vocab) continue;
    for (std::int64_t d = 0; d < problem.dim; ++d) {
      const double value = values[static_cast<std::size_t>(id * problem.dim + d)];
      const auto at = static_cast<std::size_t>(i * problem.dim + d);
      found.value[at] = value;
      found.tolerance[at] = unit * std::abs(value) + least;
    }
  }
  return found;
}

Expected backward_oracle(const Problem& problem, std::span<const std::int64_t> ids, const ConstTensorView& dx,
                         const ConstTensorView& before) {
  const std::vector<double> gradients = to_doubles(dx);
  const auto elements = static_cast<std::size_t>(problem.vocab * problem.dim);
  Expected found{before.data == nullptr ? std::vector<double>(elements) : to_doubles(before),
                 std::vector<double>(elements)};
  std::vector<double> sizes = found.value;
  for (double& size : sizes) size = std::abs(size);
  std::vector<std::int64_t> terms(static_cast<std::size_t>(problem.vocab), before.data == nullptr ? 0 : 1);
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const std::int64_t id = ids[static_cast<std::size_t>(i)];
    if (id < 0 || id >= problem.vocab) continue;
    ++terms[static_cast<std::size_t>(id)];
    for (std::int64_t d = 0; d < problem.dim; ++d) {
      const double gradient = gradients[static_cast<std::size_t>(i * problem.dim + d)];
      found.value[static_cast<std::size_t>(id * problem.dim + d)] += gradient;
      sizes[static_cast<std::size_t>(id * problem.dim + d)] += std::abs(gradient);
    }
  }
  // n terms take n − 1 additions. Sums of fp32 numbers have no underflow: they are multiples of its smallest one.
  const double unit = unit_roundoff(problem.gradient());
  for (std::size_t i = 0; i < elements; ++i) {
    const std::int64_t roundings = std::max<std::int64_t>(terms[i / static_cast<std::size_t>(problem.dim)] - 1, 0);
    // The oracle's own sum has an error too, if the carrier is as precise.
    const double own = problem.gradient() == DType::f64 ? 2 : 1;
    found.tolerance[i] = own * std::min(gamma(roundings, unit), gamma_probable(roundings, unit)) * sizes[i];
  }
  return found;
}

}  // namespace syslab::embedding
