// AdamW on a GPU: one kernel over the whole arena, a vector of four parameters a thread.
//
// A thread reads 16 bytes each of p, m, v and g with streaming loads (they are not read again soon), and writes three
// of them back and the half-precision copy: 64 B in flight a thread, 1,024 threads or more a multiprocessor, 8 MB in
// all, where 4 TB/s at a microsecond of latency need 4 MB. The step's numbers come from device memory: three vectors,
// in L1 after a multiprocessor's first block. The arithmetic, with a correctly rounded root and division, is about 40
// instructions an element, a fifth of what fits in the time of the memory accesses.
//
// Weights in halves (core/split_float.hpp) move as vectors of 8 bytes: 8 B an element, as whole ones do, with the copy
// among them. The upper halves are what the forward pass reads.
//
// Napkin: 28 B an element, 30 with the copy; 129e6 parameters are 3.9 GB, 1.3 ms at an H100's 3.0 TB/s and 0.9 ms at an
// H200's 4.3.
//
// What waits for what. Threads share nothing, so there is no barrier. wait_for_kernels_before: the gradient and the
// step's numbers have landed, and earlier kernels have left the weights, which are overwritten.
#include <cstdint>
#include <type_traits>

#include "core/split_float.hpp"
#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/adamw/cuda_kernels.hpp"
#include "ops/adamw/rungs.hpp"
#include "ops/pack_elements.cuh"
#include "ops/storage.hpp"

namespace syslab::adamw {
namespace {

using ops::Pack;

constexpr int kThreads = 256;
constexpr int kWidth = 4;

// Three loads of 16 bytes instead of one a number.
struct alignas(16) LoadedNumbers {
  StepNumbers<float> numbers;
  std::int32_t skip, unused;
};
static_assert(sizeof(LoadedNumbers) == 48 && offsetof(Scalars, in_f32) % 16 == 0 &&
              offsetof(Scalars, skip) == offsetof(Scalars, in_f32) + offsetof(LoadedNumbers, skip));

__device__ __forceinline__ LoadedNumbers load_numbers(const Scalars* scalars) {
  union {
    float4 vectors[3];
    LoadedNumbers loaded;
  } both;
  const auto* from = reinterpret_cast<const float4*>(&scalars->in_f32);
#pragma unroll
  for (int n = 0; n < 3; ++n) both.vectors[n] = from[n];
  return both.loaded;
}

template <typename T, int kCount>
__device__ __forceinline__ Pack<T, kCount> load_once(const T* from) {
  using Vector = std::conditional_t<sizeof(T) == 4, float4, uint2>;
  Pack<T, kCount> pack;
  if constexpr (kCount == 4) {
    *reinterpret_cast<Vector*>(&pack) = __ldcs(reinterpret_cast<const Vector*>(from));
  } else {
    pack.at[0] = __ldcs(from);
  }
  return pack;
}

template <typename T, int kCount>
__device__ __forceinline__ void store_once(T* to, const Pack<T, kCount>& pack) {
  using Vector = std::conditional_t<sizeof(T) == 4, float4, uint2>;
  if constexpr (kCount == 4) {
    __stcs(reinterpret_cast<Vector*>(to), *reinterpret_cast<const Vector*>(&pack));
  } else {
    __stcs(to, pack.at[0]);
  }
}

// The weights of a step: load() issues the reads, whole() waits for them, store() writes the new weights. The forward
// pass reads copies and upper halves soon, so they may stay in the cache.
template <typename Copy>
struct WholeWeights {
  const float* old_p;  // may be the next one
  float* p;
  Copy* copy;  // null where Copy is void

  template <int kCount>
  __device__ __forceinline__ auto load(std::int64_t at) const {
    return load_once<float, kCount>(old_p + at);
  }
  template <int kCount>
  __device__ __forceinline__ static Pack<float, kCount> whole(const Pack<float, kCount>& loaded) {
    return loaded;
  }
  template <int kCount>
  __device__ __forceinline__ void store(std::int64_t at, const Pack<float, kCount>& pack) const {
    store_once(p + at, pack);
    if constexpr (!std::is_void_v<Copy>) ops::store_pack(copy + at, ops::to_pack<Copy>(pack.at));
  }
};

struct SplitWeights {
  const std::uint16_t *old_high, *old_low;  // may be the next ones
  std::uint16_t *high, *low;

  template <int kCount>
  struct Halves {
    Pack<std::uint16_t, kCount> high, low;
  };
  template <int kCount>
  __device__ __forceinline__ Halves<kCount> load(std::int64_t at) const {
    return {load_once<std::uint16_t, kCount>(old_high + at), load_once<std::uint16_t, kCount>(old_low + at)};
  }
  template <int kCount>
  __device__ __forceinline__ static Pack<float, kCount> whole(const Halves<kCount>& halves) {
    Pack<float, kCount> pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.at[i] = __uint_as_float(joined_bits({halves.high.at[i], halves.low.at[i]}));
    return pack;
  }
  template <int kCount>
  __device__ __forceinline__ void store(std::int64_t at, const Pack<float, kCount>& pack) const {
    Halves<kCount> halves;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const SplitFloat two = split_bits(__float_as_uint(pack.at[i]));
      halves.high.at[i] = two.high;
      halves.low.at[i] = two.low;
    }
    ops::store_pack(high + at, halves.high);
    store_once(low + at, halves.low);
  }
};

template <typename Weights>
struct Arena {
  Weights weights;
  const float *old_m, *old_v, *g;  // the first two may be the next two
  float *m, *v;
};

struct StepState {
  const Scalars* scalars;
  const float* clip;
  const std::int64_t* non_finite;
};

template <int kCount, typename Weights>
__device__ __forceinline__ void step_at(const Arena<Weights>& arena, const StepState& state, std::int64_t at) {
  const auto weights = arena.weights.template load<kCount>(at);
  Pack<float, kCount> m = load_once<float, kCount>(arena.old_m + at), v = load_once<float, kCount>(arena.old_v + at);
  const Pack<float, kCount> g = load_once<float, kCount>(arena.g + at);
  // After the loads were issued, so that they do not wait for this one.
  const LoadedNumbers loaded = load_numbers(state.scalars);
  const float clip = state.clip == nullptr ? 1.0F : *state.clip;
  if (loaded.skip != 0 || (state.non_finite != nullptr && *state.non_finite != 0)) return;
  const float g_scale = loaded.numbers.grad_scale * clip;
  Pack<float, kCount> p = Weights::whole(weights);
#pragma unroll
  for (int i = 0; i < kCount; ++i) step_element(loaded.numbers, g_scale, p.at[i], m.at[i], v.at[i], g.at[i]);
  arena.weights.store(at, p);
  store_once(arena.m + at, m);
  store_once(arena.v + at, v);
}

// A thread takes a vector of kCount; the last threads take one element each, after the last whole vector.
template <int kCount, typename Weights>
__global__ void __launch_bounds__(kThreads) step_kernel(Arena<Weights> arena, StepState state, std::int64_t elements) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t packs = elements / kCount;
  if (index < packs) return step_at<kCount>(arena, state, index * kCount);
  if (kCount > 1 && packs * kCount + (index - packs) < elements) {
    step_at<1>(arena, state, packs * kCount + (index - packs));
  }
}

template <int kCount, typename Weights>
void launch(const Problem& problem, const Args& args, const Weights& weights, device::Stream stream) {
  static device::OverlappedKernel launcher(step_kernel<kCount, Weights>, 0, "step_kernel of adamw");
  const std::int64_t threads = problem.elements / kCount + problem.elements % kCount;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  const OldState old = old_state(args);
  launcher.launch(dim3(blocks), kThreads, stream,
                  Arena<Weights>{weights, old.m.as<float>(), old.v.as<float>(), args.g.as<float>(), args.m.as<float>(),
                                 args.v.as<float>()},
                  StepState{args.scalars, args.clip, args.non_finite}, problem.elements);
}

template <typename Weights>
void launch_widest(const Problem& problem, const Args& args, const Weights& weights, device::Stream stream) {
  bool aligned = true;
  const OldState old = old_state(args);
  for (const ConstTensorView& view :
       {old.p, old.m, old.v, old.low, ConstTensorView(args.p), ConstTensorView(args.m), ConstTensorView(args.v),
        ConstTensorView(args.low), args.g, ConstTensorView(args.copy)}) {
    aligned = aligned && ops::rows_are_aligned(view);
  }
  aligned ? launch<kWidth>(problem, args, weights, stream) : launch<1>(problem, args, weights, stream);
}

template <typename Copy>
void launch_whole(const Problem& problem, const Args& args, device::Stream stream) {
  launch_widest(problem, args,
                WholeWeights<Copy>{old_state(args).p.as<float>(), args.p.as<float>(),
                                   static_cast<Copy*>(problem.copy_dtype ? args.copy.data : nullptr)},
                stream);
}

void launch_split(const Problem& problem, const Args& args, device::Stream stream) {
  const auto halves = [](const ConstTensorView& view) { return static_cast<const std::uint16_t*>(view.data); };
  const OldState old = old_state(args);
  launch_widest(problem, args,
                SplitWeights{halves(old.p), halves(old.low), static_cast<std::uint16_t*>(args.p.data),
                             static_cast<std::uint16_t*>(args.low.data)},
                stream);
}

}  // namespace

void cuda_step(const Problem& problem, const Args& args, device::Stream stream) {
  if (problem.split) return launch_split(problem, args, stream);
  if (!problem.copy_dtype) return launch_whole<void>(problem, args, stream);
  if (*problem.copy_dtype == DType::bf16) return launch_whole<__nv_bfloat16>(problem, args, stream);
  launch_whole<__half>(problem, args, stream);
}

}  // namespace syslab::adamw
