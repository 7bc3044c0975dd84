#include "device/cuda/cublas_engine.hpp"

#include <cublas_v2.h>

#include <array>
#include <string>

#include "core/error.hpp"
#include "device/buffer.hpp"
#include "device/cuda/cuda.cuh"
#include "device/cuda/cuda_library.hpp"

namespace syslab::device {
namespace {

// The newest ABI that this build knows comes first; the functions used here are the same in both.
constexpr std::array kFiles = {
#if CUDART_VERSION >= 13000
    "libcublas.so.13", "libcublas.so.12"
#else
    "libcublas.so.12", "libcublas.so.13"
#endif
};

constexpr std::size_t kBlasWorkspace = std::size_t{32} << 20;  // what cuBLAS's manual advises for Hopper

cudaDataType_t cuda_type_of(DType dtype) {
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

cublasOperation_t operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

cublasComputeType_t compute_type(DType in, DType out, bool tf32) {
  if (out == DType::f64) return CUBLAS_COMPUTE_64F;
  return tf32 && in == DType::f32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// `status` is not success. `name` and `text` come from the library.
[[noreturn]] void throw_blas_status(cublasStatus_t status, const char* name, const char* text, const std::string& asked,
                                    const char* call) {
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

// Declared by hand, since the header overloads this name.
using StridedBatched = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                      const void*, cudaDataType, int, long long, const void*, cudaDataType, int,
                                      long long, const void*, void*, cudaDataType, int, long long, int,
                                      cublasComputeType_t, cublasGemmAlgo_t);

struct Functions {
  CudaLibrary library{kFiles, "the package libcublas", "matrix products on the GPU"};
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasDestroy) destroy = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasSetWorkspace) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasGetStatusName) status_name = nullptr;
  decltype(&cublasGetStatusString) status_text = nullptr;
  StridedBatched* gemm = nullptr;
  std::string why;

  Functions() : why(library.why()) {
    if (!library.found()) return;
    take("cublasCreate_v2", create);
    take("cublasDestroy_v2", destroy);
    take("cublasSetStream_v2", set_stream);
    take("cublasSetWorkspace_v2", set_workspace);
    take("cublasSetMathMode", set_math_mode);
    take("cublasGetStatusName", status_name);
    take("cublasGetStatusString", status_text);
    take("cublasGemmStridedBatchedEx", gemm);
  }

  template <typename Function>
  void take(const char* name, Function*& function) {
    library.look_up(name, function);
    if (function == nullptr && why.empty()) {
      why = library.file() + " has no " + name + ": it is older than CUDA 12; install cuBLAS of CUDA 12 or 13";
    }
  }

  void check(cublasStatus_t status, const char* asked, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw_blas_status(status, status_name(status), status_text(status), asked, call);
  }
};

const Functions& functions() {
  static const Functions table;
  return table;
}

const Functions& functions_or_throw() {
  const Functions& table = functions();
  if (!table.why.empty()) throw Error(ErrorKind::device, table.why, "dlopen");
  return table;
}

class Engine final : public CublasEngine {
 public:
  explicit Engine(Stream stream)
      : table_(functions_or_throw()), workspace_(kBlasWorkspace, "cuBLAS workspace", stream, MemoryCategory::library) {
    table_.check(table_.create(&handle_), "start cuBLAS", "cublasCreate");
    try {
      // The stream first: setting it resets the workspace to cuBLAS's own.
      table_.check(table_.set_stream(handle_, cuda_stream(stream)), "give cuBLAS its stream", "cublasSetStream");
      table_.check(table_.set_workspace(handle_, workspace_.data(), kBlasWorkspace), "give cuBLAS its workspace",
                   "cublasSetWorkspace");
      // Half-precision products are summed in float throughout, even if their sum is split.
      const auto mode =
          static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
      table_.check(table_.set_math_mode(handle_, mode), "set cuBLAS's precision", "cublasSetMathMode");
    } catch (...) {
      table_.destroy(handle_);
      throw;
    }
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() override { table_.destroy(handle_); }

  // Row-major C = op(A)·op(B) is column-major Cᵀ = op(B)ᵀ·op(A)ᵀ of the same memory: operands are swapped.
  void gemm(const Gemm& g) override {
    const bool wide = g.c.dtype == DType::f64;
    const double alpha = g.alpha, beta = g.beta;
    const auto alpha_single = static_cast<float>(alpha), beta_single = static_cast<float>(beta);
    const void* scale = wide ? static_cast<const void*>(&alpha) : &alpha_single;
    const void* keep = wide ? static_cast<const void*>(&beta) : &beta_single;
    const cublasComputeType_t compute = compute_type(g.a.dtype, g.c.dtype, g.math == GemmMath::tf32);
    table_.check(table_.gemm(handle_, operation(g.transpose_b), operation(g.transpose_a), static_cast<int>(g.n),
                             static_cast<int>(g.m), static_cast<int>(g.k), scale, g.b.data, cuda_type_of(g.b.dtype),
                             static_cast<int>(g.b.row_stride), g.b.batch_stride, g.a.data, cuda_type_of(g.a.dtype),
                             static_cast<int>(g.a.row_stride), g.a.batch_stride, keep, g.c.data,
                             cuda_type_of(g.c.dtype), static_cast<int>(g.c.row_stride), g.c.batch_stride,
                             static_cast<int>(g.batch), compute, CUBLAS_GEMM_DEFAULT),
                 "multiply matrices", "cublasGemmStridedBatchedEx");
  }

 private:
  const Functions& table_;
  Buffer workspace_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<CublasEngine> make_cublas_engine(Stream stream) { return std::make_unique<Engine>(stream); }

std::string why_no_cublas() { return functions().why; }

}  // namespace syslab::device
