// Compiled without contraction of multiply and add, so that a deviation has the bits that the host finds.
//
// What waits for what. No barrier: a warp finds its largest number by shuffles, and the warps meet in atomicMax. Both
// words were set to zero earlier in the stream, and whoever reads them waits for the stream. raise_by_warp() first
// reads the word without any order and may see an old value. Words only grow, so an old value is too small, and the
// worst that follows is an atomicMax that changes nothing.
#include <algorithm>

#include "device/cuda/cuda.cuh"
#include "trials/kernels.hpp"

namespace syslab::parallel::kernels {
namespace {

using Bits = unsigned long long;

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;  // grid-stride loops do the rest

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks));
}

__device__ std::int64_t first_element() { return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ std::int64_t step() { return static_cast<std::int64_t>(gridDim.x) * kThreads; }

__global__ void __launch_bounds__(kThreads)
    write_brought(float* at, std::int64_t elements, CollectiveContent content, float scale) {
  for (std::int64_t i = first_element(); i < elements; i += step()) {
    at[i] = scale * static_cast<float>(content.brought(i));
  }
}

// The bits of a number's magnitude: ordered as the numbers are, with NaNs above all.
__device__ Bits magnitude(double number) { return static_cast<Bits>(__double_as_longlong(number)) & ~Bits{0} >> 1; }

__device__ void raise(Bits& most, Bits other) { most = most > other ? most : other; }

// Once a warp, and only if the word grows, because atomics on one word are serialised.
__device__ void raise_by_warp(Bits* there, Bits own) {
  for (int lane = 16; lane > 0; lane /= 2) raise(own, __shfl_down_sync(0xffffffffU, own, lane));
  if (threadIdx.x % 32 == 0 && own > *static_cast<volatile Bits*>(there)) atomicMax(there, own);
}

__global__ void __launch_bounds__(kThreads)
    find_deviation(const float* found, std::int64_t elements, CollectiveContent content, double scale, Bits* raised) {
  Bits worst = 0, largest = 0;
  for (std::int64_t i = first_element(); i < elements; i += step()) {
    const double wanted = scale * content.expected(i);
    raise(worst, magnitude(static_cast<double>(found[i]) - wanted));
    raise(largest, magnitude(wanted));
  }
  raise_by_warp(raised, worst);
  raise_by_warp(raised + 1, largest);
}

}  // namespace

void fill_brought(float* at, std::int64_t elements, const CollectiveContent& content, float scale,
                  device::Stream stream) {
  write_brought<<<blocks_for(elements), kThreads, 0, device::cuda_stream(stream)>>>(at, elements, content, scale);
  device::check_launch("write_brought");
}

void raise_deviation(const float* found, std::int64_t elements, const CollectiveContent& content, double scale,
                     std::uint64_t* worst_and_largest, device::Stream stream) {
  find_deviation<<<blocks_for(elements), kThreads, 0, device::cuda_stream(stream)>>>(
      found, elements, content, scale, reinterpret_cast<Bits*>(worst_and_largest));
  device::check_launch("find_deviation");
}

}  // namespace syslab::parallel::kernels
