// The statistics of a norm computed in a narrow format: every sum, product, quotient and root is rounded to it, as in a
// kernel that never leaves the format. Shows what layer norm and RMSNorm lose in half precision.
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
  layer_norm,  // (x − mean) / √(variance + eps), the mean first, then the squares of the differences
  rms_norm,    // x / √(mean of x² + eps)
};
enum class Sum {
  sequential,  // one accumulator
  pairwise,    // recursive halves: a tree of depth ⌈log2 n⌉
};

struct Problem {
  Norm norm = Norm::layer_norm;
  Sum sum = Sum::pairwise;
  DType format = DType::f32;  // of all results; f64: practically exact
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

// `x`: values exact in the data's format; each is rounded to the problem's format when read.
Result normalise(const Problem& problem, std::span<const double> x);

// The largest relative error of a sum of n terms of one sign, as long as nothing overflows: (1 + u)^depth − 1, with
// depth n − 1 (sequential) or ⌈log2 n⌉ (pairwise).
double sum_error_bound(const Problem& problem, std::int64_t n);
// The largest finite number of a format.
double largest(DType format);

}  // namespace syslab::norm_statistics
