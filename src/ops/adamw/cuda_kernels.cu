// AdamW on a GPU: one kernel over the whole arena, a vector of four parameters a thread.
//
// A thread reads 16 bytes each of p, m, v and g, past the caches' usual ways (nobody reads them again soon), and writes
// three of them back and the half-precision copy: 64 B in flight a thread, 1,024 threads or more a multiprocessor, 8 MB
// in all, where 4 TB/s for a microsecond of latency wants 4 MB. The step's numbers come from device memory: three
// vectors that the multiprocessor's first cache holds after its first block. Arithmetic, a root and a division with
// correct rounding among it, is about 40 instructions an element, a fifth of what the memory's time has room for.
//
// Napkin: 28 B an element, 30 with the copy; 129e6 parameters are 3.9 GB, 1.3 ms at an H100's 3.0 TB/s and 0.9 ms at an
// H200's 4.3.
#include <cstdint>
#include <type_traits>

#include "device/overlap.cuh"
#include "device/ptx.cuh"
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

template <int kCount>
__device__ __forceinline__ Pack<float, kCount> load_once(const float* from) {
  Pack<float, kCount> pack;
  if constexpr (kCount == 4) {
    *reinterpret_cast<float4*>(&pack) = __ldcs(reinterpret_cast<const float4*>(from));
  } else {
    pack.at[0] = __ldcs(from);
  }
  return pack;
}

template <int kCount>
__device__ __forceinline__ void store_once(float* to, const Pack<float, kCount>& pack) {
  if constexpr (kCount == 4) {
    __stcs(reinterpret_cast<float4*>(to), *reinterpret_cast<const float4*>(&pack));
  } else {
    __stcs(to, pack.at[0]);
  }
}

template <typename Copy>
struct Arena {
  const float *old_p, *old_m, *old_v, *g;  // the first three may be the next three
  float *p, *m, *v;
  Copy* copy;  // null where Copy is void
};

struct StepState {
  const Scalars* scalars;
  const float* clip;
  const std::int64_t* non_finite;
};

template <int kCount, typename Copy>
__device__ __forceinline__ void step_at(const Arena<Copy>& arena, const StepState& state, std::int64_t at) {
  Pack<float, kCount> p = load_once<kCount>(arena.old_p + at), m = load_once<kCount>(arena.old_m + at),
                      v = load_once<kCount>(arena.old_v + at);
  const Pack<float, kCount> g = load_once<kCount>(arena.g + at);
  // After the loads were sent off, so that they do not wait for this one.
  const LoadedNumbers loaded = load_numbers(state.scalars);
  const float clip = state.clip == nullptr ? 1.0F : *state.clip;
  if (loaded.skip != 0 || (state.non_finite != nullptr && *state.non_finite != 0)) return;
  const float g_scale = loaded.numbers.grad_scale * clip;
#pragma unroll
  for (int i = 0; i < kCount; ++i) step_element(loaded.numbers, g_scale, p.at[i], m.at[i], v.at[i], g.at[i]);
  store_once(arena.p + at, p);
  store_once(arena.m + at, m);
  store_once(arena.v + at, v);
  // The forward pass reads the copy soon: it may stay in the cache.
  if constexpr (!std::is_void_v<Copy>) ops::store_pack(arena.copy + at, ops::to_pack<Copy>(p.at));
}

// A thread a vector of kCount; the elements behind the last whole one have a thread each, behind the others.
template <int kCount, typename Copy>
__global__ void __launch_bounds__(kThreads) step_kernel(Arena<Copy> arena, StepState state, std::int64_t elements) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t packs = elements / kCount;
  if (index < packs) return step_at<kCount>(arena, state, index * kCount);
  if (kCount > 1 && packs * kCount + (index - packs) < elements) {
    step_at<1>(arena, state, packs * kCount + (index - packs));
  }
}

template <int kCount, typename Copy>
void launch(const Problem& problem, const Args& args, device::Stream stream) {
  static device::OverlappedKernel launcher(step_kernel<kCount, Copy>, 0, "step_kernel of adamw");
  const std::int64_t threads = problem.elements / kCount + problem.elements % kCount;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  const OldState old = old_state(args);
  launcher.launch(dim3(blocks), kThreads, stream,
                  Arena<Copy>{old.p.as<float>(), old.m.as<float>(), old.v.as<float>(), args.g.as<float>(),
                              args.p.as<float>(), args.m.as<float>(), args.v.as<float>(),
                              static_cast<Copy*>(problem.copy_dtype ? args.copy.data : nullptr)},
                  StepState{args.scalars, args.clip, args.non_finite}, problem.elements);
}

template <typename Copy>
void launch_widest(const Problem& problem, const Args& args, device::Stream stream) {
  bool aligned = true;
  const OldState old = old_state(args);
  for (const ConstTensorView& view : {old.p, old.m, old.v, ConstTensorView(args.p), ConstTensorView(args.m),
                                      ConstTensorView(args.v), args.g, ConstTensorView(args.copy)}) {
    aligned = aligned && ops::rows_are_aligned(view);
  }
  aligned ? launch<kWidth, Copy>(problem, args, stream) : launch<1, Copy>(problem, args, stream);
}

}  // namespace

void cuda_step(const Problem& problem, const Args& args, device::Stream stream) {
  if (!problem.copy_dtype) return launch_widest<void>(problem, args, stream);
  if (*problem.copy_dtype == DType::bf16) return launch_widest<__nv_bfloat16>(problem, args, stream);
  launch_widest<__half>(problem, args, stream);
}

}  // namespace syslab::adamw
