// cuBLAS and cuBLASLt behind plain functions: cublas_engine.cu and cublaslt_engine.cu where the build has CUDA, else
// cublas_engine_none.cpp. Nobody outside this room includes this.
#pragma once

#include <memory>
#include <string>

#include "device/cublas.hpp"

namespace syslab::device {

// A handle bound to one stream, with its workspace. Of one thread.
class CublasEngine {
 public:
  virtual ~CublasEngine() = default;
  virtual void gemm(const Gemm& gemm) = 0;  // checked already, m, n, k and batch above 0
};

// The same of cuBLASLt, whose heuristics are asked once for each kind of product.
class CublasLtEngine {
 public:
  virtual ~CublasLtEngine() = default;
  virtual void gemm(const Gemm& gemm, const Epilogue& epilogue) = 0;  // as above
};

std::unique_ptr<CublasEngine> make_cublas_engine(Stream stream);
std::unique_ptr<CublasLtEngine> make_cublaslt_engine(Stream stream);
// This thread's, of a stream that is about to end; another thread's stays until that thread ends or meets the same
// stream handle again, for which it serves as well.
void forget_engines(Place place, Stream stream) noexcept;
std::string cublas_version();  // "13.1.0"; empty where it is missing

}  // namespace syslab::device
