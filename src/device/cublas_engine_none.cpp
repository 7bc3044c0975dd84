// Stands in for cublas_engine.cu where the build has no CUDA toolkit.
#include "device/cublas_engine.hpp"
#include "device/cuda_error.hpp"

namespace syslab::device {

std::unique_ptr<CublasEngine> make_cublas_engine(Stream) { throw_no_cuda("multiply matrices on a GPU"); }
std::unique_ptr<CublasLtEngine> make_cublaslt_engine(Stream) { throw_no_cuda("multiply matrices on a GPU"); }
std::string cublas_version() { return {}; }
std::string why_no_cublas() { return "this build has no CUDA; configure with -Dcuda=enabled"; }
std::string why_no_cublaslt() { return why_no_cublas(); }

}  // namespace syslab::device
