// What the oracle of a matrix product needs in addition to two products in fp64: an element a thread, read and written
// once, so nothing waits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device/cuda/cuda.cuh"
#include "ops/gemm/cuda_kernels.hpp"
#include "ops/gemm/oracle.hpp"

namespace syslab::gemm {
namespace {

constexpr int kThreads = 256;

__device__ std::int64_t thread_index() { return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

template <typename T>
__global__ void widen_kernel(const T* from, std::int64_t row_stride, std::int64_t columns, std::int64_t count,
                             double* to) {
  const std::int64_t index = thread_index();
  if (index < count) to[index] = static_cast<float>(from[index / columns * row_stride + index % columns]);
}

__global__ void absolute_kernel(double* values, std::int64_t count) {
  const std::int64_t index = thread_index();
  if (index < count) values[index] = fabs(values[index]);
}

__global__ void bounds_kernel(Problem problem, double operand_unit, const double* values, double* bounds,
                              std::int64_t count) {
  const std::int64_t index = thread_index();
  if (index < count) bounds[index] = element_bound(problem, operand_unit, values[index], bounds[index]);
}

template <typename Kernel, typename... Arguments>
void over(std::int64_t count, const char* name, device::Stream stream, Kernel kernel, const Arguments&... arguments) {
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  kernel<<<blocks, kThreads, 0, device::cuda_stream(stream)>>>(arguments...);
  device::check_launch(name);
}

template <typename T>
void widen_as(const ConstTensorView& from, double* to, device::Stream stream) {
  over(from.elements(), "widening of a matrix", stream, widen_kernel<T>, static_cast<const T*>(from.data),
       from.stride(0), from.size(1), from.elements(), to);
}

}  // namespace

void widen(const ConstTensorView& from, double* to, device::Stream stream) {
  switch (from.dtype) {
    case DType::f32:
      return widen_as<float>(from, to, stream);
    case DType::f16:
      return widen_as<__half>(from, to, stream);
    case DType::bf16:
      return widen_as<__nv_bfloat16>(from, to, stream);
    case DType::f64:
      break;
  }
  throw Error(ErrorKind::internal, "the oracle of products on a GPU is for those that are less exact than itself");
}

void make_absolute(double* values, std::int64_t count, device::Stream stream) {
  over(count, "absolute values", stream, absolute_kernel, values, count);
}

void bounds_from_magnitudes(const Problem& problem, double operand_unit, const double* values, double* bounds,
                            device::Stream stream) {
  const std::int64_t count = problem.m * problem.n;
  over(count, "bounds of a product", stream, bounds_kernel, problem, operand_unit, values, bounds, count);
}

}  // namespace syslab::gemm
