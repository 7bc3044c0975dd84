// Matrix products on the GPU, row-major, by cuBLAS. The library is opened at first use; if it is missing, the error
// names the file and the remedy. On the CPU's stream the host's BLAS is used (float and double).
//
//   gemm({.m = rows, .n = keys, .k = d, .transpose_b = true, .alpha = scale,
//         .a = {q, DType::bf16, d, rows * d}, .b = {k, DType::bf16, d, keys * d},
//         .c = {scores, DType::f32, keys, rows * keys}, .batch = heads}, stream);
#pragma once

#include <cstdint>
#include <string>

#include "core/dtype.hpp"
#include "device/device.hpp"

namespace syslab::device {

enum class GemmMath {
  exact,  // products of the operands' dtype, summed in float (in double for double)
  tf32    // float operands are rounded to TF32 first: 10 bits of mantissa, tensor cores
};

template <typename Pointer>
struct BasicGemmMatrix {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  std::int64_t row_stride = 0;    // elements from one row to the next in memory
  std::int64_t batch_stride = 0;  // elements from one product's matrix to the next; 0: all use the same
};

// C_i (m×n) = alpha · op(A_i) (m×k) · op(B_i) (k×n) + beta · C_i for i < batch. With beta = 0, C is not read. A and B
// have the same dtype, C has that dtype or float; if one is double, all are.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  BasicGemmMatrix<const void*> a, b;
  BasicGemmMatrix<void*> c;
  std::int64_t batch = 1;
  GemmMath math = GemmMath::exact;
};

// Queues the products on `stream`. Each thread keeps a handle and a 32 MiB workspace per stream
// (MemoryCategory::library) from the first call until the stream ends: call once before capturing a graph. Equal inputs
// give equal bits. Error(usage) for dtypes or sizes that cuBLAS does not support, Error(device) if the library is
// missing or fails.
void gemm(const Gemm& gemm, Stream stream);

// The signature of device/blas.hpp plus a stream.
void sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc,
           Stream stream);
void dgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
           const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
           std::int64_t ldc, Stream stream);

// Opens the library if it is not open yet. Returns an empty string, or why it failed and the remedy.
std::string why_no_cublas();

}  // namespace syslab::device
