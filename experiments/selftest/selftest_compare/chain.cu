// One thread a multiprocessor walks the same chain, so that the GPU's clocks are those of a busy GPU; the first writes.
#include "chain.hpp"
#include "device/cuda/cuda.cuh"

namespace syslab::selftest {
namespace {

constexpr int kBlocks = 128, kTooManyThreads = 4096;

__global__ void chain(const double* start, std::int64_t steps, double* end) {
  auto state = static_cast<std::uint64_t>(__double_as_longlong(*start));
  for (std::int64_t i = 0; i < steps; ++i) state = 6364136223846793005ULL * state + 1442695040888963407ULL;
  // Every block's work is needed for what it may write, so that no compiler leaves it out.
  if (blockIdx.x == 0 || state == 0) *end = static_cast<double>(state >> 32);
}

}  // namespace

void queue_chain(const double* start, std::int64_t steps, double* end, GpuFault fault, device::Stream stream) {
  const device::CurrentDevice current(stream);
  if (fault == GpuFault::illegal) end = reinterpret_cast<double*>(std::uintptr_t{0x10});
  const int threads = fault == GpuFault::launch ? kTooManyThreads : 1;
  chain<<<kBlocks, threads, 0, device::cuda_stream(stream)>>>(start, steps, end);
  // A careless implementation does not ask: whoever times it must find out.
  if (fault == GpuFault::none) device::check_launch("chain");
}

}  // namespace syslab::selftest
