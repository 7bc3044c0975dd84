// Replaces cublas_engine.cu in builds without the CUDA toolkit.
#include "device/cuda/cublas_engine.hpp"
#include "device/cuda/cuda_error.hpp"

namespace syslab::device {

std::unique_ptr<CublasEngine> make_cublas_engine(Stream) { throw_no_cuda("multiply matrices on a GPU"); }
std::string why_no_cublas() { return "this build has no CUDA; configure with -Dcuda=enabled"; }

}  // namespace syslab::device
