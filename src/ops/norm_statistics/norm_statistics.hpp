// The statistics of a norm computed in a narrow format: every sum, product, quotient and root is rounded to it, as a
// kernel that never leaves the format would. What layer norm and RMSNorm lose in half precision, computed.
//
// Source: CS336 assignment 2, benchmarking_mixed_precision (b); error bounds: Higham, "Accuracy and Stability of
// Numerical Algorithms", 2nd ed., section 4.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.hpp"

namespace syslab::norm_statistics {

enum class Norm {
  layer_norm,  // (x − mean) / √(variance + eps), the mean first, then the squares of what is left
  rms_norm,    // x / √(mean of x² + eps)
};
enum class Sum {
  sequential,  // one accumulator
  pairwise,    // halves, summed alike: a tree of depth ⌈log2 n⌉
};

struct Problem {
  Norm norm = Norm::layer_norm;
  Sum sum = Sum::pairwise;
  DType format = DType::f32;  // of all that is computed; f64: as good as exact
  double eps = 1e-5;
};

struct Statistics {
  double mean = 0;    // 0 for RMSNorm
  double square = 0;  // variance, or mean of squares, without eps
  double rstd = 0;    // 1 / √(square + eps)
};

struct Result {
  Statistics statistics;
  std::vector<double> y;
};

// `x`: values that the format of the data holds exactly; each is rounded to the problem's format where it is read.
Result normalise(const Problem& problem, std::span<const double> x);

// The largest relative error of a sum of n terms of one sign, as long as nothing overflows: (1 + u)^depth − 1, with n −
// 1 additions one behind the other or ⌈log2 n⌉ levels.
double sum_error_bound(const Problem& problem, std::int64_t n);
// The largest finite number of a format.
double largest(DType format);

}  // namespace syslab::norm_statistics
