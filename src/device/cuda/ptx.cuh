// The PTX instructions that portable tensor-core kernels are made of (sm_80 and later), as plain device functions.
//
// Fragment layouts are those of the PTX ISA, "Matrix multiply-accumulate operation using mma instruction": with lane l,
// group g = l / 4 and pair t = l % 4,
//   A (16×16, row)  a0: (g, 2t..2t+1)  a1: (g+8, 2t..)  a2: (g, 2t+8..)  a3: (g+8, 2t+8..)
//   B (16×8, col)   b0: k = 2t..2t+1, n = g            b1: k = 2t+8.., n = g
//   C (16×8)        c0,c1: (g, 2t..2t+1)               c2,c3: (g+8, 2t..2t+1)
//
// What waits for what. A barrier in a kernel can have two jobs, and every kernel says of each of its barriers which it
// has and why:
//   landed   what its threads wrote before it, all of them can read after it
//   left     none of its threads still reads what is overwritten after it
//
// The instructions below do this much and no more:
//   wait_copies             waits for the calling thread's own cp.async groups. A tile that many threads have copied is
//                           whole only after a barrier that follows each thread's wait. Groups are counted, empty ones
//                           too: a loop commits one in every step, so that the count tells which step has landed.
//   barrier, barrier_of_block, __syncwarp
//                           both jobs, among the threads that name the barrier, the block, the warp.
//   ldmatrix, mma, shuffles bring the lanes of a warp together, but do not make one lane's stores to shared memory
//                           visible to another, nor order one lane's reads before another's stores: both need a
//                           __syncwarp.
//   wait_for_kernels_before both jobs, between kernels (device/cuda/overlap.cuh).
// mbarriers, TMA and wgmma have theirs in mbarrier.cuh, tma.cuh and wgmma.cuh.
// A barrier inside an `if` or after a `return` is under a condition that is the same for all threads it counts, so that
// all of them reach it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "device/cuda/delay.cuh"

namespace syslab::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// This thread's lane, read anew at every call, so that nothing computed from it is kept in registers across a loop.
__device__ __forceinline__ int lane_anew() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// threadIdx.x, read anew at every call too.
__device__ __forceinline__ int thread_anew() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Over the four lanes that hold a row of a fragment C; all four get the result.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0U, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0U, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0U, x, 1);
  return x + __shfl_xor_sync(~0U, x, 2);
}

// `value`, which is the same in all lanes. The compiler may then keep what is computed from it in uniform registers.
__device__ __forceinline__ int uniform(int value) { return __shfl_sync(~0U, value, 0); }

// D += A·B, 16×8×16, half-precision operands packed two a register, fp32 accumulation.
template <typename T>
__device__ __forceinline__ void mma_16816(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                          std::uint32_t b1) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(std::is_same_v<T, __half>);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// D += A·B, 16×8×8, TF32 operands: fp32 words of which the hardware ignores the low 13 bits. Round with to_tf32 first.
__device__ __forceinline__ void mma_1688_tf32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                              std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// To nearest, ties away from zero: the one rounding that sm_80 has for it.
__device__ __forceinline__ std::uint32_t to_tf32(float value) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

// Four 8×8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8 (16-byte aligned).
__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// 16 bytes from global to shared memory, bypassing registers and L1; with `valid` false, zeros are stored and nothing
// is read. Both addresses are 16-byte aligned.
__device__ __forceinline__ void copy_async_16(std::uint32_t to, const void* from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}

// The same for 8 bytes, through L1.
__device__ __forceinline__ void copy_async_8(std::uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most the `Pending` youngest groups of this thread's copies are under way.
template <int Pending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Between kernels of one stream, where launches overlap (sm_90 and later; device/cuda/overlap.cuh). The first waits
// until the kernels before have ended and what they wrote can be read. The second lets blocks of the next kernel start
// as soon as a multiprocessor has room; they then wait in the first. On older GPUs both are empty: a kernel starts when
// the one before has ended.
__device__ __forceinline__ void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_kernel_come() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// 2^x to about 2 ulp; −∞ gives 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __forceinline__ void store_shared(std::uint32_t address, std::uint32_t value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ std::uint32_t load_shared(std::uint32_t address) {
  std::uint32_t value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// Four at a 16-byte aligned address.
__device__ __forceinline__ void store_shared(std::uint32_t address, const float (&value)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(value[0]), "f"(value[1]), "f"(value[2]),
               "f"(value[3])
               : "memory");
}

// Four words at a 16-byte aligned address.
__device__ __forceinline__ void store_shared(std::uint32_t address, const std::uint32_t (&value)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value[0]), "r"(value[1]), "r"(value[2]),
               "r"(value[3])
               : "memory");
}
__device__ __forceinline__ void load_shared(std::uint32_t address, std::uint32_t (&value)[4]) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
               : "r"(address)
               : "memory");
}

// 8-byte aligned.
__device__ __forceinline__ float2 load_shared_pair(std::uint32_t address) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(address));
  return pair;
}

// *to += value atomically, in no order, without returning the old value.
__device__ __forceinline__ void reduce_add(float* to, float value) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

#if __CUDA_ARCH__ >= 900
// The same for four neighbours, 16-byte aligned.
__device__ __forceinline__ void reduce_add(float* to, const float (&value)[4]) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(value[0]), "f"(value[1]), "f"(value[2]),
               "f"(value[3])
               : "memory");
}
#endif

// Between blocks, through global memory: after a load that sees the addition, what was written before the addition can
// be read.
__device__ __forceinline__ unsigned load_acquire(const unsigned* from) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ void add_release(unsigned* to, unsigned value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

// Waits for `threads` threads (whole warps) that name the same barrier, 1 … 15; barrier_of_block() is barrier 0.
__device__ __forceinline__ void barrier(int name, int threads) {
  perhaps_delay<3>();
  asm volatile("barrier.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
  perhaps_delay<2>();
}

// __syncthreads(), with delays in a build for debugging.
__device__ __forceinline__ void barrier_of_block() {
  perhaps_delay<3>();
  __syncthreads();
  perhaps_delay<2>();
}

// Two floats as one register of T, `low` in the low half, rounded to nearest even.
template <typename T>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  } else {
    static_assert(std::is_same_v<T, __half>);
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
}

// The two halves of such a register, the low one as x.
template <typename T>
__device__ __forceinline__ float2 unpack(std::uint32_t bits) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000U)};
  } else {
    static_assert(std::is_same_v<T, __half>);
    return __half22float2(reinterpret_cast<const __half2&>(bits));
  }
}

}  // namespace syslab::ptx
