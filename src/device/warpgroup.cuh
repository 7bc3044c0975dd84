// Four warps that work as one (sm_90a): their share of the registers, and barriers by name between such groups.
#pragma once

#include <cstdint>

namespace syslab::ptx {

// By all warps of a group of four; 24 to 256, a multiple of 8. What all groups of the block hold together is what the
// block was launched with: who takes more waits until others have given.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Arrives at a barrier that others wait at (barrier() in ptx.cuh): `threads` of both kinds together, names 1 … 15.
__device__ __forceinline__ void arrive_named(int name, int threads) {
  asm volatile("barrier.cta.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// Four 8×8 matrices of 16-bit elements to shared memory; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrices(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace syslab::ptx
