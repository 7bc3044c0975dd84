// Compares outputs in GPU memory: every thread tallies the elements of its stride, a block merges its threads' tallies
// in shared memory, the host merges those of the blocks. No atomics, so that equal inputs give equal answers. One pass
// over the output, its expectation and its bounds: 18 bytes an element in half precision, a millisecond for 1.6·10⁸ at
// 3 TB/s.
//
// What waits for what (landed, left: device/cuda/ptx.cuh).
//   (1) compare_elements, block, before each halving
//       landed   The tallies merged in the turn before (in the first turn, each thread's own) are there for the threads
//                that merge them now.
//       left     Nothing: a thread overwrites only its own tally, which no other thread reads in this turn.
//   After the last turn the first thread reads the tally that it has merged itself.
//   sum_words: atomic additions of integers to a word that was set to zero earlier in the stream. Whoever reads it
//   waits for the stream.
#include <algorithm>
#include <vector>

#include "check/kernels.hpp"
#include "core/dtype.hpp"
#include "device/buffer.hpp"
#include "device/cuda/cuda.cuh"
#include "device/digest.hpp"
#include "device/memory.hpp"

namespace syslab::check::kernels {
namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kMostBlocks = 1024;

struct Element {
  double value;
  std::uint64_t bits;
};

__device__ Element load(const double* at, std::int64_t i) {
  return {at[i], static_cast<std::uint64_t>(__double_as_longlong(at[i]))};
}
__device__ Element load(const float* at, std::int64_t i) { return {at[i], __float_as_uint(at[i])}; }
__device__ Element load(const f16* at, std::int64_t i) { return {to_float(at[i]), at[i].bits}; }
__device__ Element load(const bf16* at, std::int64_t i) { return {to_float(at[i]), at[i].bits}; }

struct Sizes {
  std::int64_t size[Tally::kRank];
  int rank;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    compare_elements(const T* found, std::uint64_t poison, const double* expected, const double* bounds, bool one_bound,
                     std::int64_t count, Sizes sizes, Tally* tallies) {
  Tally own;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const Element element = load(found, i);
    own.add(i, element.value, expected[i], bounds[one_bound ? 0 : i], element.bits == poison, sizes.size, sizes.rank);
  }
  // Raw bytes: shared memory runs no constructors.
  __shared__ alignas(Tally) unsigned char memory[kThreads * sizeof(Tally)];
  Tally* shared = reinterpret_cast<Tally*>(memory);
  shared[threadIdx.x] = own;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();  // (1)
    if (static_cast<int>(threadIdx.x) < half) shared[threadIdx.x].merge(shared[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) tallies[blockIdx.x] = shared[0];
}

int blocks_for(std::int64_t count, std::int64_t a_block) {
  return static_cast<int>(std::clamp<std::int64_t>((count + a_block - 1) / a_block, 1, kMostBlocks));
}

template <typename T>
void launch(const ConstTensorView& found, std::uint64_t poison, const double* expected, const double* bounds,
            bool one_bound, const Sizes& sizes, Tally* tallies, int blocks, device::Stream stream) {
  compare_elements<<<blocks, kThreads, 0, device::cuda_stream(stream)>>>(
      static_cast<const T*>(found.data), poison, expected, bounds, one_bound, found.elements(), sizes, tallies);
  device::check_launch("compare_elements");
}

__global__ void __launch_bounds__(256)
    sum_words(const unsigned char* data, std::int64_t bytes, unsigned long long* sum) {
  const std::int64_t words = (bytes + 7) / 8, step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::uint64_t own = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
    std::uint64_t word = 0;
    if (8 * i + 8 <= bytes) {
      word = reinterpret_cast<const std::uint64_t*>(data)[i];
    } else {
      for (std::int64_t byte = 8 * i; byte < bytes; ++byte) word = word << 8 | data[byte];
    }
    own += device::mixed(word + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(i + 1));
  }
  for (int lane = 16; lane > 0; lane /= 2) own += __shfl_down_sync(0xffffffffU, own, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, static_cast<unsigned long long>(own));  // integers: any order, one sum
}

}  // namespace

Tally compare(const ConstTensorView& found, std::uint64_t poison, const double* expected, const double* bounds,
              bool one_bound, const std::int64_t* sizes, int rank, device::Stream stream) {
  const device::CurrentDevice current(stream);
  Sizes shape{};
  shape.rank = rank;
  std::copy(sizes, sizes + rank, shape.size);
  const int blocks = blocks_for(found.elements(), 8 * kThreads);
  const device::Buffer tallies(static_cast<std::size_t>(blocks) * sizeof(Tally), "comparison", stream);
  auto* const there = tallies.as<Tally>();
  switch (found.dtype) {
    case DType::f64:
      launch<double>(found, poison, expected, bounds, one_bound, shape, there, blocks, stream);
      break;
    case DType::f32:
      launch<float>(found, poison, expected, bounds, one_bound, shape, there, blocks, stream);
      break;
    case DType::f16:
      launch<f16>(found, poison, expected, bounds, one_bound, shape, there, blocks, stream);
      break;
    case DType::bf16:
      launch<bf16>(found, poison, expected, bounds, one_bound, shape, there, blocks, stream);
      break;
  }
  std::vector<Tally> parts(static_cast<std::size_t>(blocks));
  device::copy_now(parts.data(), there, parts.size() * sizeof(Tally), stream);
  Tally all;
  for (const Tally& part : parts) all.merge(part);
  return all;
}

void fingerprint(const void* data, std::size_t bytes, std::uint64_t* sum, device::Stream stream) {
  const device::CurrentDevice current(stream);
  const auto count = static_cast<std::int64_t>(bytes);
  sum_words<<<blocks_for(count, 8 * 256), 256, 0, device::cuda_stream(stream)>>>(
      static_cast<const unsigned char*>(data), count, reinterpret_cast<unsigned long long*>(sum));
  device::check_launch("sum_words");
}

}  // namespace syslab::check::kernels
