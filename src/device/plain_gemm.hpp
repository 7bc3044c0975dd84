// A matrix product in plain loops: the fallback without a BLAS, and the reference in tests of the BLAS wrapper.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/parallel.hpp"

namespace syslab::device {

// C = alpha · op(A) · op(B) + beta · C, row-major, as device/blas.hpp. With beta = 0, C is not read.
template <typename T>
void plain_gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
                std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  // The inner loop walks rows of B, so a transposed B is copied once: k·n copies against m·n·k reads.
  std::vector<T> turned;
  if (transpose_b) {
    turned.resize(static_cast<std::size_t>(k * n));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t p = 0; p < k; ++p) turned[static_cast<std::size_t>(p * n + j)] = b[j * ldb + p];
    }
    b = turned.data();
    ldb = n;
  }
  parallel_for(m, [&](std::int64_t i, int) {
    T* row = c + i * ldc;
    if (beta == T(0)) {
      std::fill(row, row + n, T(0));
    } else if (beta != T(1)) {
      std::transform(row, row + n, row, [&](T x) { return beta * x; });
    }
    for (std::int64_t p = 0; p < k; ++p) {
      const T factor = alpha * (transpose_a ? a[p * lda + i] : a[i * lda + p]);
      const T* other = b + p * ldb;
      for (std::int64_t j = 0; j < n; ++j) row[j] += factor * other[j];
    }
  });
}

}  // namespace syslab::device
