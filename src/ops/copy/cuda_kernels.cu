// A copy by loads and stores of 16 bytes.
//
// A thread reads four vectors, a block's width apart, before it writes one: 64 B in flight a thread, 2048 threads a
// multiprocessor, 17 MB over an H100's 132, where 3 TB/s at half a microsecond of latency need 1.5 MB. So neither
// unrolling further nor asynchronous copies can gain anything; what remains is the DRAM switching between reads and
// writes.
//
// If the two pointers have different offsets within 16 bytes, vectors cannot be both read and written. Elements are
// then copied one by one, with a quarter to an eighth of the bytes in flight.
//
// What waits for what. Threads share nothing, so there is no barrier. The launch orders the copy after earlier kernels.
#include <algorithm>
#include <cstdint>

#include "device/cuda/cuda.cuh"
#include "ops/copy/cuda_kernels.hpp"

namespace syslab::copy {
namespace {

constexpr int kThreads = 256, kUnroll = 4;

template <typename Vector>
__global__ void __launch_bounds__(kThreads)
    copy_kernel(const Vector* __restrict__ from, Vector* __restrict__ to, std::int64_t count) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  Vector vectors[kUnroll];
#pragma unroll
  for (int n = 0; n < kUnroll; ++n) {
    if (first + n * kThreads < count) vectors[n] = __ldcs(from + first + n * kThreads);
  }
#pragma unroll
  for (int n = 0; n < kUnroll; ++n) {
    if (first + n * kThreads < count) __stcs(to + first + n * kThreads, vectors[n]);
  }
}

template <typename Vector>
void launch(const std::byte* from, std::byte* to, std::size_t bytes, device::Stream stream) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(Vector));
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + kThreads * kUnroll - 1) / (kThreads * kUnroll));
  copy_kernel<<<blocks, kThreads, 0, device::cuda_stream(stream)>>>(reinterpret_cast<const Vector*>(from),
                                                                    reinterpret_cast<Vector*>(to), count);
  device::check_launch("copy by vectors");
}

void launch_elements(const std::byte* from, std::byte* to, std::size_t bytes, std::size_t width,
                     device::Stream stream) {
  if (width == sizeof(std::uint64_t)) return launch<unsigned long long>(from, to, bytes, stream);
  if (width == sizeof(std::uint32_t)) return launch<unsigned>(from, to, bytes, stream);
  launch<unsigned short>(from, to, bytes, stream);
}

}  // namespace

void copy_vectors(const void* from, void* to, std::size_t bytes, std::size_t width, device::Stream stream) {
  constexpr std::size_t kVector = sizeof(uint4);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(to) % kVector;
  if (reinterpret_cast<std::uintptr_t>(from) % kVector != offset) {
    return launch_elements(source, target, bytes, width, stream);
  }
  const std::size_t head = std::min((kVector - offset) % kVector, bytes), body = (bytes - head) / kVector * kVector;
  launch_elements(source, target, head, width, stream);
  launch<uint4>(source + head, target + head, body, stream);
  launch_elements(source + head + body, target + head + body, bytes - head - body, width, stream);
}

}  // namespace syslab::copy
