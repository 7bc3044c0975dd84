#include "ops/norm_statistics/norm_statistics.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace syslab::norm_statistics {
namespace {

// Each operation is done in double and rounded to fp32 and from there to a half format. That is one correct rounding: a
// format of p bits may be rounded twice if the wider one has 2p + 2 (53 for fp32, 24 for 11 and 8 bits), for sums,
// products, quotients and square roots (Figueroa, "When is double rounding innocuous?", 1995).
class Format {
 public:
  explicit Format(DType dtype) : dtype_(dtype) {}
  double operator()(double value) const {
    switch (dtype_) {
      case DType::f64:
        return value;
      case DType::f32:
        return static_cast<float>(value);
      case DType::f16:
        return to_float(to_f16(static_cast<float>(value)));
      case DType::bf16:
        return to_float(to_bf16(static_cast<float>(value)));
    }
    return value;
  }

 private:
  DType dtype_;
};

double sum_of(std::span<const double> terms, Sum how, const Format& rounded) {
  if (how == Sum::sequential || terms.size() < 2) {
    double sum = 0;
    for (const double term : terms) sum = rounded(sum + term);
    return sum;
  }
  const std::size_t half = std::bit_ceil(terms.size()) / 2;
  return rounded(sum_of(terms.first(half), how, rounded) + sum_of(terms.subspan(half), how, rounded));
}

}  // namespace

Result normalise(const Problem& problem, std::span<const double> x) {
  if (x.empty()) throw Error(ErrorKind::usage, "a norm of no elements; at least one is wanted");
  const Format rounded(problem.format);
  // An integer count with more digits than the format is rounded, too: fp16 cannot hold 2049.
  const double n = rounded(static_cast<double>(x.size()));
  Result made;
  made.y.reserve(x.size());
  for (const double value : x) made.y.push_back(rounded(value));
  if (problem.norm == Norm::layer_norm) {
    made.statistics.mean = rounded(sum_of(made.y, problem.sum, rounded) / n);
    for (double& value : made.y) value = rounded(value - made.statistics.mean);
  }
  std::vector<double> squares;
  squares.reserve(x.size());
  for (const double value : made.y) squares.push_back(rounded(value * value));
  made.statistics.square = rounded(sum_of(squares, problem.sum, rounded) / n);
  made.statistics.rstd = rounded(1 / rounded(std::sqrt(rounded(made.statistics.square + rounded(problem.eps)))));
  for (double& value : made.y) value = rounded(value * made.statistics.rstd);
  return made;
}

double sum_error_bound(const Problem& problem, std::int64_t n) {
  const double depth = problem.sum == Sum::sequential
                           ? static_cast<double>(n - 1)
                           : static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  return std::expm1(depth * std::log1p(unit_roundoff(problem.format)));
}

double largest(DType format) {
  switch (format) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f32:
      return std::numeric_limits<float>::max();
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
  }
  return 0;
}

}  // namespace syslab::norm_statistics
