#include "tests/device/gpu_work.hpp"

#include "device/cuda/cuda.cuh"

namespace syslab::device {
namespace {

__device__ std::uint64_t nanoseconds_now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin_kernel(std::uint64_t nanoseconds) {
  const std::uint64_t began = nanoseconds_now();
  while (nanoseconds_now() - began < nanoseconds) {
  }
}

__global__ void add_kernel(std::uint32_t* value) { *value += 1; }

__global__ void write_kernel(volatile int* nowhere) { *nowhere = 1; }

}  // namespace

void spin(std::uint64_t nanoseconds, Stream stream) { spin_everywhere(nanoseconds, 1, stream); }

void spin_everywhere(std::uint64_t nanoseconds, int blocks, Stream stream) {
  spin_kernel<<<blocks, 1, 0, cuda_stream(stream)>>>(nanoseconds);
  check_launch("spin_kernel");
}

void add_one(std::uint32_t* value, Stream stream) {
  add_kernel<<<1, 1, 0, cuda_stream(stream)>>>(value);
  check_launch("add_kernel");
}

void launch_with_too_many_threads(Stream stream) { add_kernel<<<1, 4096, 0, cuda_stream(stream)>>>(nullptr); }

void write_to_nowhere(Stream stream) {
  write_kernel<<<1, 1, 0, cuda_stream(stream)>>>(reinterpret_cast<int*>(std::uintptr_t{64}));
}

}  // namespace syslab::device
