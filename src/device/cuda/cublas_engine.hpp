// cuBLAS behind plain functions: cublas_engine.cu if the build has CUDA, else cublas_engine_none.cpp. Private to this
// room.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/cublas.hpp"

namespace syslab::device {

// A handle bound to one stream, with its workspace. Used by one thread.
class CublasEngine {
 public:
  virtual ~CublasEngine() = default;
  virtual void gemm(const Gemm& gemm) = 0;  // checked already, m, n, k and batch above 0
};

std::unique_ptr<CublasEngine> make_cublas_engine(Stream stream);
// Drops this thread's engines of a stream that is about to end. Another thread's engine stays until that thread ends;
// it also works if the same stream handle is used again.
void forget_engines(Place place, Stream stream) noexcept;

}  // namespace syslab::device
