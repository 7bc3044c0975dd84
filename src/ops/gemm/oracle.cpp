#include "ops/gemm/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "device/parallel.hpp"

namespace syslab::gemm {
namespace {

// Column j of B as a row, so that a dot product reads both operands contiguously.
std::vector<double> turned(const Problem& p, const ConstTensorView& b) {
  const std::vector<double> values = to_doubles(b);
  std::vector<double> columns(values.size());
  constexpr std::int64_t kBlock = 64;  // of both dimensions: a block of either operand fits in L1
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kBlock) {
    for (std::int64_t j0 = 0; j0 < p.n; j0 += kBlock) {
      for (std::int64_t k = k0; k < std::min(k0 + kBlock, p.k); ++k) {
        for (std::int64_t j = j0; j < std::min(j0 + kBlock, p.n); ++j) {
          columns[static_cast<std::size_t>(j * p.k + k)] = values[static_cast<std::size_t>(k * p.n + j)];
        }
      }
    }
  }
  return columns;
}

struct Dot {
  double value, magnitude;
};

template <typename Carrier>
Dot dot(const double* a, const double* b, std::int64_t count) {
  Carrier value = 0, magnitude = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Carrier term = static_cast<Carrier>(a[i]) * b[i];
    value += term;
    magnitude += std::abs(term);
  }
  return {static_cast<double>(value), static_cast<double>(magnitude)};
}

}  // namespace

Expected oracle(const Problem& p, const ConstTensorView& a, const ConstTensorView& b, const OracleOptions& options) {
  const std::vector<double> rows = to_doubles(a), columns = turned(p, b);
  const auto elements = static_cast<std::size_t>(p.m * p.n);
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  Expected found{std::vector<double>(elements, nothing), std::vector<double>(elements, nothing)};
  const double affordable = options.budget / (static_cast<double>(p.m) * static_cast<double>(p.k));
  const bool whole = affordable >= static_cast<double>(p.n);
  const std::int64_t of_a_row = whole ? p.n : std::max<std::int64_t>(static_cast<std::int64_t>(affordable), 1);
  const RandomStream stream = RandomStream::derive(options.seed, "gemm", "oracle", "columns");
  std::vector<std::int64_t> computed(static_cast<std::size_t>(p.m));
  device::parallel_for(p.m, [&](std::int64_t i, int) {
    for (std::int64_t n = 0; n < of_a_row; ++n) {
      const std::int64_t j = whole ? n : stream.bits(static_cast<std::uint64_t>(i * of_a_row + n)) % p.n;
      const auto at = static_cast<std::size_t>(i * p.n + j);
      if (!std::isnan(found.tolerance[at])) continue;  // drawn twice
      const double *row = rows.data() + i * p.k, *column = columns.data() + j * p.k;
      const Dot exact = p.dtype == DType::f64 ? dot<long double>(row, column, p.k) : dot<double>(row, column, p.k);
      found.value[at] = exact.value;
      found.tolerance[at] = element_bound(p, options.operand_unit, exact.value, exact.magnitude);
      ++computed[static_cast<std::size_t>(i)];
    }
  });
  std::int64_t all = 0;
  for (const std::int64_t count : computed) all += count;
  found.fraction = static_cast<double>(all) / static_cast<double>(elements);
  return found;
}

}  // namespace syslab::gemm
