// `gpu`: the same additions by one thread of a GPU, in its own instructions: fp32 add, and the half-precision adds that
// round once to fp16 and bf16. One thread, because the order of additions is the experiment.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "core/error.hpp"
#include "device/buffer.hpp"
#include "device/cuda/cuda.cuh"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "ops/accumulation/rungs.hpp"

namespace syslab::accumulation {
namespace {

// Results for the host.
struct Left {
  std::uint32_t bits = 0, addend_bits = 0;
  std::int64_t last_change = 0;
};

template <typename T>
__device__ T rounded(float value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

template <typename T>
__device__ std::uint32_t bits_of(T value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __half_as_ushort(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat16_as_ushort(value);
  } else {
    return __float_as_uint(value);
  }
}

// One rounding each. The intrinsics with _rn are never contracted into a multiply-add.
__device__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __half add(__half a, __half b) { return __hadd_rn(a, b); }
__device__ __nv_bfloat16 add(__nv_bfloat16 a, __nv_bfloat16 b) { return __hadd_rn(a, b); }

template <typename Accumulator, typename Addend>
__global__ void sum_kernel(float denominator, std::int64_t count, bool converted, Left* left) {
  const Addend constant = rounded<Addend>(__fdiv_rn(1.0F, denominator));
  const Accumulator before_loop = rounded<Accumulator>(static_cast<float>(constant));
  Accumulator total = rounded<Accumulator>(0.0F);
  Left found;
  for (std::int64_t i = 1; i <= count; ++i) {
    // Cases 3 and 4 of the hand-out differ in this line alone.
    const Accumulator step = converted ? before_loop : rounded<Accumulator>(static_cast<float>(constant));
    const Accumulator next = add(total, step);
    if (bits_of(next) != bits_of(total)) found.last_change = i;
    total = next;
  }
  found.bits = bits_of(total);
  found.addend_bits = bits_of(constant);
  *left = found;
}

double value_of(std::uint32_t bits, DType dtype) {
  switch (dtype) {
    case DType::f16:
      return to_double(f16{static_cast<std::uint16_t>(bits)});
    case DType::bf16:
      return to_double(bf16{static_cast<std::uint16_t>(bits)});
    default: {
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
  }
}

using Kernel = void (*)(float, std::int64_t, bool, Left*);

Kernel kernel_of(const Case& how) {
  if (how.accumulator == DType::f32 && how.addend == DType::f32) return sum_kernel<float, float>;
  if (how.accumulator == DType::f32 && how.addend == DType::f16) return sum_kernel<float, __half>;
  if (how.accumulator == DType::f16 && how.addend == DType::f16) return sum_kernel<__half, __half>;
  if (how.accumulator == DType::bf16 && how.addend == DType::bf16) return sum_kernel<__nv_bfloat16, __nv_bfloat16>;
  throw Error(ErrorKind::internal, "accumulation: no kernel for case '" + how.name + "'");
}

}  // namespace

Result sum_on_gpu(const Problem& problem) {
  const Kernel kernel = kernel_of(problem.how);
  const device::OwnedStream stream({device::Kind::cuda, 0});
  const device::CurrentDevice current(stream.place());
  const device::Buffer left(sizeof(Left), "accumulation", stream.view());
  kernel<<<1, 1, 0, device::cuda_stream(stream)>>>(static_cast<float>(problem.denominator), problem.count,
                                                   problem.how.converted, left.as<Left>());
  device::check_launch("sum_kernel of accumulation");
  Left found;
  device::copy_now(&found, left.data(), sizeof found, stream);
  return {.bits = found.bits,
          .value = value_of(found.bits, problem.how.accumulator),
          .addend = value_of(found.addend_bits, problem.how.addend),
          .last_change = found.last_change};
}

}  // namespace syslab::accumulation
