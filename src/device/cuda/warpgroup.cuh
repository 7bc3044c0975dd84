// Four warps that work as one (sm_90a): their share of the registers, and named barriers between such groups.
//
// What waits for what (landed, left: ptx.cuh). arrive_named() and wait_named() of the same name have both jobs in
// one direction: what the arriving threads wrote can be read, and what they read can be overwritten, by those that
// wait. take_registers() waits for registers that other warps give, and orders no memory.
#pragma once

#include <cstdint>

#include "device/cuda/delay.cuh"
#include "device/cuda/ptx.cuh"

namespace syslab::ptx {

// By all warps of a group of four; 24 to 256, a multiple of 8. All groups of the block together hold what it was
// launched with: a group that takes more waits until others have given.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// barrier() of ptx.cuh.
__device__ __forceinline__ void wait_named(int name, int threads) { barrier(name, threads); }

// Arrives at a barrier where others wait (wait_named()), without waiting: `threads` counts both kinds, names 1 … 15.
__device__ __forceinline__ void arrive_named(int name, int threads) {
  perhaps_delay<3>();
  asm volatile("barrier.cta.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// Four 8×8 matrices of 16-bit elements to shared memory; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrices(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace syslab::ptx
