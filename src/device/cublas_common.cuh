// What cuBLAS and cuBLASLt have in common here: names of their files, types, and how a status becomes an Error.
#pragma once

#include <cublas_api.h>

#include <string>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "device/cuda.cuh"

namespace syslab::device {

inline constexpr std::size_t kBlasWorkspace = std::size_t{32} << 20;  // what cuBLAS's manual advises for Hopper

inline cudaDataType_t cuda_type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
  }
  return CUDA_R_32F;
}

inline cublasOperation_t operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

inline cublasComputeType_t compute_type(DType in, DType out, bool tf32) {
  if (out == DType::f64) return CUBLAS_COMPUTE_64F;
  return tf32 && in == DType::f32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// `status` is not success. `name` and `text` as the library tells them.
[[noreturn]] inline void throw_blas_status(cublasStatus_t status, const char* name, const char* text,
                                           const std::string& asked, const char* call) {
  const char* remedy = "the arguments or the GPU do not suit this library";
  if (status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_INITIALIZED) {
    remedy = "free GPU memory, and call once before capturing a graph";
  } else if (status == CUBLAS_STATUS_EXECUTION_FAILED) {
    remedy = "a kernel failed: run under compute-sanitizer";
  } else if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    remedy = "it has no such product for these dtypes, strides or alignments";
  }
  throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::oom : ErrorKind::device,
              "could not " + asked + ": " + name + " (" + text + "); " + remedy, call);
}

}  // namespace syslab::device
