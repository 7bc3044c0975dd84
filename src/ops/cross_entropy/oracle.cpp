#include "ops/cross_entropy/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random.hpp"
#include "core/rounding.hpp"

namespace syslab::cross_entropy {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Expected nothing_expected(std::size_t elements) {
  return {std::vector<double>(elements, kNaN), std::vector<double>(elements, kNaN)};
}

std::vector<double> row_of(const ConstTensorView& matrix, std::int64_t row) {
  const std::int64_t bytes = row * matrix.stride(0) * static_cast<std::int64_t>(size_of(matrix.dtype));
  return to_doubles({static_cast<const std::byte*>(matrix.data) + bytes, matrix.dtype, Shape{matrix.size(1)}});
}

// Twice the roundoff in fp64, where the oracle's own differences, exponentials and results round as the kernel's do.
double carrier_unit(const Problem& problem) {
  return (problem.dtype == DType::f64 ? 2 : 1) * unit_roundoff(problem.statistics());
}

// The largest error of rounding to zero: an exponential below the smallest normal number.
double vanishing(const Problem& problem) { return 2 * smallest_normal(problem.statistics()); }

struct RowSum {
  double largest = 0, log_sum = 0;  // of S
  double relative = 0;              // bound on the relative error of S
  double lse() const { return largest + log_sum; }
};

template <typename Carrier>
RowSum sum_of_row(const Problem& problem, const double* row) {
  const double u = carrier_unit(problem), largest = *std::max_element(row, row + problem.classes);
  Carrier sum = 0;
  double errors = 0;
  for (std::int64_t c = 0; c < problem.classes; ++c) {
    const Carrier t = static_cast<Carrier>(row[c]) - largest, term = std::exp(t);
    sum += term;
    if (term > 0) errors += static_cast<double>(term) * 3 * u * std::abs(static_cast<double>(t));
  }
  const auto classes = problem.classes;
  const double rescaled = static_cast<double>(8 + classes / 512) * 5 * u;
  const double order = std::min(gamma(classes, u), gamma_probable(classes, u));
  const auto total = static_cast<double>(sum);
  return {largest, static_cast<double>(std::log(sum)),
          errors / total + 4 * u + rescaled + order + static_cast<double>(classes) * vanishing(problem) / total};
}

RowSum sum_of(const Problem& problem, const double* row) {
  return problem.dtype == DType::f64 ? sum_of_row<long double>(problem, row) : sum_of_row<double>(problem, row);
}

double lse_bound(const Problem& problem, const RowSum& sum) {
  const double u = carrier_unit(problem);
  return 1.01 * sum.relative + 2 * u * std::abs(sum.log_sum) + u * std::abs(sum.lse());
}

// Fills one row of the gradient; `known` bounds the error with which the kernel knows lse.
void expect_row(const Problem& problem, const double* row, std::int64_t target, double lse, double known, double share,
                double* value, double* tolerance) {
  const double u = carrier_unit(problem),
               stored = problem.statistics() == problem.dtype ? 0 : unit_roundoff(problem.dtype);
  for (std::int64_t c = 0; c < problem.classes; ++c) {
    if (!problem.has_class(target) || std::isnan(lse)) {
      value[c] = tolerance[c] = kNaN;
      continue;
    }
    const double t = row[c] - lse, p = std::exp(t);
    const double of_p = (std::isinf(t) ? 0 : p * (3 * u * std::abs(t) + 4 * u + 1.01 * known)) + vanishing(problem);
    const double difference = c == target ? p - 1 : p;
    value[c] = difference * share;
    const double carried = (of_p + u * std::abs(difference)) * std::abs(share) + 3 * u * std::abs(value[c]);
    tolerance[c] = carried + stored * (std::abs(value[c]) + carried) +
                   smallest_normal(problem.dtype) * unit_roundoff(problem.dtype);
  }
}

}  // namespace

std::vector<std::int64_t> Rows::of(std::int64_t rows) const {
  const RandomStream random = RandomStream::derive(seed, "cross_entropy", "oracle", "rows");
  std::vector<std::int64_t> chosen;
  for (std::int64_t first = 0; first < rows; first += every) {
    const auto group = static_cast<std::uint64_t>(first / every);
    chosen.push_back(first + static_cast<std::int64_t>(random.bits(group)) % std::min(every, rows - first));
  }
  return chosen;
}

Oracle oracle(const Problem& problem, const ConstTensorView& logits, std::span<const std::int64_t> targets,
              double scale, const Rows& with_gradient) {
  const std::vector<std::int64_t> chosen = with_gradient.of(problem.rows);
  const double u = carrier_unit(problem), share = scale / static_cast<double>(problem.rows);
  const auto rows = static_cast<std::size_t>(problem.rows);
  Oracle found;
  for (Expected* column : {&found.row_loss, &found.lse}) *column = nothing_expected(rows);
  found.dlogits = nothing_expected(rows * static_cast<std::size_t>(problem.classes));
  double total = 0, bounds = 0, sizes = 0;
  auto next = chosen.begin();
  for (std::int64_t row_index = 0; row_index < problem.rows; ++row_index) {
    const auto i = static_cast<std::size_t>(row_index);
    const std::vector<double> values = row_of(logits, row_index);
    const double* row = values.data();
    const RowSum sum = sum_of(problem, row);
    const double of_lse = lse_bound(problem, sum);
    found.lse.value[i] = sum.lse();
    found.lse.tolerance[i] = of_lse;
    double loss = kNaN, of_loss = kNaN;
    if (problem.has_class(targets[i])) {
      const double below = row[targets[i]] - sum.largest;
      loss = sum.log_sum - below;
      of_loss = 1.01 * sum.relative + 2 * u * std::abs(sum.log_sum) + u * (std::abs(below) + std::abs(loss)) +
                u * std::abs(sum.largest + below) * 2;
    }
    found.row_loss.value[i] = loss;
    found.row_loss.tolerance[i] = of_loss;
    total += loss;
    bounds += of_loss;
    sizes += std::abs(loss);
    if (next == chosen.end() || *next != row_index) continue;
    ++next;
    const std::int64_t at = row_index * problem.classes;
    expect_row(problem, row, targets[i], sum.lse(), of_lse, share, found.dlogits.value.data() + at,
               found.dlogits.tolerance.data() + at);
  }
  const double count = static_cast<double>(problem.rows), mean = total / count;
  const double order = std::min(gamma(problem.rows, u), gamma_probable(problem.rows, u));
  found.loss = {{mean}, {bounds / count * (1 + order) + order * sizes / count + 2 * u * std::abs(mean)}};
  found.dlogits.fraction = static_cast<double>(chosen.size()) / count;
  return found;
}

Expected gradient_oracle(const Problem& problem, const ConstTensorView& logits, std::span<const std::int64_t> targets,
                         const ConstTensorView& lse, double scale, const Rows& computed) {
  const std::vector<double> given = to_doubles(lse);
  Expected found = nothing_expected(given.size() * static_cast<std::size_t>(problem.classes));
  const std::vector<std::int64_t> chosen = computed.of(problem.rows);
  found.fraction = static_cast<double>(chosen.size()) / static_cast<double>(problem.rows);
  for (const std::int64_t row : chosen) {
    const auto i = static_cast<std::size_t>(row);
    const auto at = static_cast<std::ptrdiff_t>(i) * problem.classes;
    expect_row(problem, row_of(logits, row).data(), targets[i], given[i], 0, scale / static_cast<double>(problem.rows),
               found.value.data() + at, found.tolerance.data() + at);
  }
  return found;
}

}  // namespace syslab::cross_entropy
