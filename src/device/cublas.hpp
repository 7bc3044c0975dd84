// Matrix products on the GPU, row-major, by cuBLAS. The library is opened at first use; where it is missing the error
// says which file was looked for and what to do. On the CPU's stream the host's BLAS serves (float and double).
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
  std::int64_t row_stride = 0;    // elements from a row to the next, as it lies in memory
  std::int64_t batch_stride = 0;  // elements from a product's matrix to the next's; 0: all use the same
};

// C_i (m×n) = alpha · op(A_i) (m×k) · op(B_i) (k×n) + beta · C_i for i < batch. With beta = 0, C is not read. A and B
// have the same dtype, C that or float; all double, if one is.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  BasicGemmMatrix<const void*> a, b;
  BasicGemmMatrix<void*> c;
  std::int64_t batch = 1;
  GemmMath math = GemmMath::exact;
};

// Queues the products on `stream`. Each thread keeps a handle and a workspace of 32 MiB a stream
// (MemoryCategory::library) from the first call until the stream ends: call once before capturing a graph. Equal inputs
// give equal bits. Error(usage) for dtypes or sizes that cuBLAS has no product for, Error(device) where the library is
// missing or refuses.
void gemm(const Gemm& gemm, Stream stream);

// What may follow a product before it is stored.
struct Epilogue {
  const void* bias = nullptr;  // n values of C's dtype, added to every row; null: none
  bool gelu = false;           // after the bias: x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))
};

// gemm() by cuBLASLt, which does the epilogue in the same kernel and takes the algorithm that its heuristics like best.
// As gemm() otherwise.
void gemm_with_epilogue(const Gemm& gemm, const Epilogue& epilogue, Stream stream);

// The signature of device/blas.hpp and a stream.
void sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc,
           Stream stream);
void dgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
           const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
           std::int64_t ldc, Stream stream);

// Opens the library if nobody did yet. Empty: it is there; else why not and the remedy.
std::string why_no_cublas();
std::string why_no_cublaslt();
std::string cublas_name();  // "cuBLAS 13.1.0"; empty where it is missing

}  // namespace syslab::device
