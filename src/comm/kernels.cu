// Sums of what ranks have sent, element by element in the order of ranks. They run at the speed of memory: 16 bytes a
// load and a store, none of it kept in the cache, which the products that run meanwhile need for their tiles. Blocks
// are short, so that they fit between the blocks of others.
//
// What waits for what. A thread has its elements for itself, so the kernels have no barrier. The sources have landed
// because the caller waits for them in the stream, and others overwrite them only when the caller has told them that
// the sum is done (comm/copy_engines/copy_engines.hpp). `to` may be one of the sources: each element is read before it
// is written, by the same thread.
#include <algorithm>
#include <cstdint>

#include "comm/kernels.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "device/cuda/cuda.cuh"

namespace syslab::comm::kernels {
namespace {

constexpr int kThreads = 256;

struct Sources {
  const void* at[kMostSources];
  int count;
};

template <typename T>
struct Wide {
  using Type = float;  // halves are summed in fp32 and rounded once
};
template <>
struct Wide<double> {
  using Type = double;
};

// 16 bytes of them.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

template <typename P>
__device__ P load(const void* from, std::int64_t index) {
  const uint4 bits = __ldcs(static_cast<const uint4*>(from) + index);
  P pack;
  memcpy(&pack, &bits, sizeof pack);
  return pack;
}
template <typename P>
__device__ void store(void* to, std::int64_t index, const P& pack) {
  uint4 bits;
  memcpy(&bits, &pack, sizeof bits);
  __stcs(static_cast<uint4*>(to) + index, bits);
}

template <typename T>
__device__ typename Wide<T>::Type widened(T value) {
  if constexpr (sizeof(T) == 8) {
    return value;
  } else {
    return to_float(value);
  }
}
template <typename T>
__device__ T narrowed(typename Wide<T>::Type value) {
  if constexpr (sizeof(T) == 8) {
    return value;
  } else {
    return from_float<T>(value);
  }
}

// Of two sources, which is what most hosts' ranks come to, both loads are under way before the first is waited for.
template <typename T, bool kTwo>
__global__ void __launch_bounds__(kThreads) sum_packs(Sources sources, void* to, std::int64_t packs) {
  using P = Pack<T>;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= packs) return;
  P pack = load<P>(sources.at[0], index), next = load<P>(sources.at[kTwo ? 1 : 0], index);
  typename Wide<T>::Type sums[P::kSize];
#pragma unroll
  for (int i = 0; i < P::kSize; ++i) sums[i] = widened(pack.values[i]);
  for (int source = 1; source < (kTwo ? 2 : sources.count); ++source) {
    if constexpr (!kTwo) next = load<P>(sources.at[source], index);
#pragma unroll
    for (int i = 0; i < P::kSize; ++i) sums[i] += widened(next.values[i]);
  }
#pragma unroll
  for (int i = 0; i < P::kSize; ++i) pack.values[i] = narrowed<T>(sums[i]);
  store(to, index, pack);
}

// Where a buffer begins at no multiple of 16 bytes, and behind the last whole pack.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    sum_elements(Sources sources, void* to, std::int64_t first, std::int64_t count) {
  const std::int64_t index = first + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  auto sum = widened(static_cast<const T*>(sources.at[0])[index]);
  for (int source = 1; source < sources.count; ++source) {
    sum += widened(static_cast<const T*>(sources.at[source])[index]);
  }
  const T value = narrowed<T>(sum);
  static_cast<T*>(to)[index] = value;
}

unsigned blocks_for(std::int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

template <typename T>
void sum(const Sources& sources, void* to, std::int64_t count, device::Stream stream) {
  std::uintptr_t places = reinterpret_cast<std::uintptr_t>(to);
  for (int i = 0; i < sources.count; ++i) places |= reinterpret_cast<std::uintptr_t>(sources.at[i]);
  const std::int64_t packs = places % 16 == 0 ? count / Pack<T>::kSize : 0;
  if (packs > 0) {
    const auto kernel = sources.count == 2 ? sum_packs<T, true> : sum_packs<T, false>;
    kernel<<<blocks_for(packs), kThreads, 0, device::cuda_stream(stream)>>>(sources, to, packs);
    device::check_launch("sum_packs");
  }
  const std::int64_t done = packs * Pack<T>::kSize;
  if (done == count) return;
  sum_elements<T><<<blocks_for(count - done), kThreads, 0, device::cuda_stream(stream)>>>(sources, to, done, count);
  device::check_launch("sum_elements");
}

}  // namespace

void sum_in_order(std::span<const void* const> given, void* to, DType dtype, std::int64_t count,
                  device::Stream stream) {
  if (given.empty() || given.size() > kMostSources) throw Error(ErrorKind::internal, "a sum of no or too many sources");
  if (count == 0) return;
  Sources sources{};
  sources.count = static_cast<int>(given.size());
  std::ranges::copy(given, sources.at);
  switch (dtype) {
    case DType::f64:
      return sum<double>(sources, to, count, stream);
    case DType::f32:
      return sum<float>(sources, to, count, stream);
    case DType::f16:
      return sum<f16>(sources, to, count, stream);
    case DType::bf16:
      return sum<bf16>(sources, to, count, stream);
  }
}

}  // namespace syslab::comm::kernels
