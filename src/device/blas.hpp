// Matrix products on the host. OpenBLAS is opened at first use (it starts threads when loaded, and `syslab list` needs
// none); without it a slow but correct loop is used. Error(oom) if the address-space limit (RLIMIT_AS) is too low to
// load it: it would hang.
#pragma once

#include <cstdint>
#include <string>

namespace syslab::device {

// C (m×n) = alpha · op(A) (m×k) · op(B) (k×n) + beta · C, row-major, leading dimensions in elements. Threads:
// OpenBLAS's own, unless called inside a parallel region.
void sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);
void dgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
           const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
           std::int64_t ldc);

bool openblas_found();    // false: plain loops are used
std::string blas_name();  // "OpenBLAS 0.3.21 (SkylakeX)" or "plain loops (no OpenBLAS found)"

}  // namespace syslab::device
