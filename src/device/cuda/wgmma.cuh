// The asynchronous matrix products of a warpgroup (PTX ISA, "wgmma.mma_async"; sm_90a), as plain device functions.
//
// D (64 × N, fp32, in registers) += A (64 × 16, in shared memory or registers) · B (16 × N, in shared memory), bf16 or
// fp16. In warp w of the group, lane l, d[j][2·i + c] is row 16·w + l/4 + 8·i, column 8·j + 2·(l mod 4) + c; the four
// registers of A are those of mma.sync (ptx.cuh), so that scores in D, packed two columns a register, already have the
// layout of A.
//
// Order: fence_products() before the first product, and again whenever ordinary code has touched D or A; any number of
// products; commit_products(); wait_products<n>() until at most n later groups are under way. In between nothing may
// read or write D or A. The compiler does not know that: hold() keeps its use of these registers on the right side of
// a wait.
//
// What waits for what (landed, left: ptx.cuh)
//   wait_products   landed   D can be read.
//                   left     This warp's products have read A and B. A in registers may be overwritten. Shared memory
//                            is read by other warps too: it may be overwritten behind a barrier that follows the
//                            waits of all of them.
//   Operands in shared memory that TMA wrote have landed after wait() at its mbarrier. Those that ordinary stores wrote
//   take fence_async_proxy() by each writer, then a barrier (tma.cuh).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace syslab::ptx {

__device__ __forceinline__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// No instruction; the compiler moves no use of these registers across it.
template <int kColumns>
__device__ __forceinline__ void hold(float (&d)[kColumns / 8][4]) {
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[j][e])::"memory");
  }
}

// No instruction; tells the compiler that the values in these registers are dead. For use before products that
// overwrite them while others are under way: otherwise the compiler may copy the old values to the registers of the
// products.
template <int kColumns>
__device__ __forceinline__ void forget(float (&d)[kColumns / 8][4]) {
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "=f"(d[j][e]));
  }
}

// Descriptor of an operand in shared memory, in the layout that TMA writes: panels of rows of kRowBytes (64 or 128),
// swizzled by as much. Along rows (K-major: the sum runs along a row) `stride` is not read; across rows (MN-major: the
// sum runs over rows, the operand is read transposed) it is the distance between panels. Bytes are added to a
// descriptor with at(descriptor, bytes).
template <int kRowBytes>
__device__ __forceinline__ std::uint64_t operand(std::uint32_t address, int stride = 16) {
  static_assert(kRowBytes == 64 || kRowBytes == 128);
  constexpr std::uint64_t kSwizzle = kRowBytes == 128 ? 1 : 2, kEightRows = 8 * kRowBytes;
  return (kSwizzle << 62) | ((kEightRows >> 4) << 32) | (static_cast<std::uint64_t>(stride >> 4) << 16) |
         ((address & 0x3FFFF) >> 4);
}
__device__ __forceinline__ std::uint64_t at(std::uint64_t descriptor, int bytes) {
  return descriptor + static_cast<std::uint64_t>(bytes >> 4);
}

// A product of N columns: Product<N>::of_shared<T>(d, a, b, keep) with A in shared memory, both K-major,
// of_shared_across<T>(d, a, b, keep) the same, both MN-major. A in registers: of_registers<T>(d, a, b, keep = true)
// with B MN-major, of_registers_along<T>(d, a, b, keep) with B K-major. `keep` false: D = A·B.
template <int kColumns>
struct Product;

// Inline PTX needs the names of all registers written out.
#define SYSLAB_NAMES_0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define SYSLAB_NAMES_1 "%8,%9,%10,%11,%12,%13,%14,%15"
#define SYSLAB_NAMES_2 "%16,%17,%18,%19,%20,%21,%22,%23"
#define SYSLAB_NAMES_3 "%24,%25,%26,%27,%28,%29,%30,%31"
#define SYSLAB_NAMES_4 "%32,%33,%34,%35,%36,%37,%38,%39"
#define SYSLAB_NAMES_5 "%40,%41,%42,%43,%44,%45,%46,%47"
#define SYSLAB_NAMES_6 "%48,%49,%50,%51,%52,%53,%54,%55"
#define SYSLAB_NAMES_7 "%56,%57,%58,%59,%60,%61,%62,%63"
#define SYSLAB_NAMES_8 "%64,%65,%66,%67,%68,%69,%70,%71"
#define SYSLAB_NAMES_9 "%72,%73,%74,%75,%76,%77,%78,%79"
#define SYSLAB_NAMES_10 "%80,%81,%82,%83,%84,%85,%86,%87"
#define SYSLAB_NAMES_11 "%88,%89,%90,%91,%92,%93,%94,%95"
#define SYSLAB_NAMES_12 "%96,%97,%98,%99,%100,%101,%102,%103"
#define SYSLAB_NAMES_13 "%104,%105,%106,%107,%108,%109,%110,%111"
#define SYSLAB_NAMES_14 "%112,%113,%114,%115,%116,%117,%118,%119"
#define SYSLAB_NAMES_15 "%120,%121,%122,%123,%124,%125,%126,%127"
#define SYSLAB_EIGHT(g)                                                                              \
  "+f"(d[2 * g][0]), "+f"(d[2 * g][1]), "+f"(d[2 * g][2]), "+f"(d[2 * g][3]), "+f"(d[2 * g + 1][0]), \
      "+f"(d[2 * g + 1][1]), "+f"(d[2 * g + 1][2]), "+f"(d[2 * g + 1][3])

#define SYSLAB_SHARED(N, TYPE, ACROSS, NAMES, A, B, KEEP, ...)                                               \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, " KEEP ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N   \
               "k16.f32." TYPE "." TYPE " {" NAMES "}, " A ", " B ", keep, 1, 1, " ACROSS ", " ACROSS ";\n}" \
               : __VA_ARGS__                                                                                 \
               : "l"(a), "l"(b), "r"(static_cast<int>(keep)))
#define SYSLAB_REGISTERS(N, TYPE, ACROSS, NAMES, A0, A1, A2, A3, B, KEEP, ...)                                    \
  asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, " KEEP ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N        \
               "k16.f32." TYPE "." TYPE " {" NAMES "}, {" A0 "," A1 "," A2 "," A3 "}, " B ", keep, 1, 1, " ACROSS \
               ";\n}"                                                                                             \
               : __VA_ARGS__                                                                                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(keep)))

#define SYSLAB_PRODUCT(N, NAMES, X0, X1, X2, X3, X4, X5, ...)                                                       \
  template <>                                                                                                       \
  struct Product<N> {                                                                                               \
    template <typename T>                                                                                           \
    static __device__ __forceinline__ void of_shared(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b,        \
                                                     bool keep) {                                                   \
      if constexpr (std::is_same_v<T, __nv_bfloat16>) {                                                             \
        SYSLAB_SHARED(N, "bf16", "0", NAMES, X0, X1, X2, __VA_ARGS__);                                              \
      } else {                                                                                                      \
        SYSLAB_SHARED(N, "f16", "0", NAMES, X0, X1, X2, __VA_ARGS__);                                               \
      }                                                                                                             \
    }                                                                                                               \
    template <typename T>                                                                                           \
    static __device__ __forceinline__ void of_shared_across(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b, \
                                                            bool keep) {                                            \
      if constexpr (std::is_same_v<T, __nv_bfloat16>) {                                                             \
        SYSLAB_SHARED(N, "bf16", "1", NAMES, X0, X1, X2, __VA_ARGS__);                                              \
      } else {                                                                                                      \
        SYSLAB_SHARED(N, "f16", "1", NAMES, X0, X1, X2, __VA_ARGS__);                                               \
      }                                                                                                             \
    }                                                                                                               \
    template <typename T>                                                                                           \
    static __device__ __forceinline__ void of_registers(float (&d)[N / 8][4], const std::uint32_t (&a)[4],          \
                                                        std::uint64_t b, bool keep = true) {                        \
      if constexpr (std::is_same_v<T, __nv_bfloat16>) {                                                             \
        SYSLAB_REGISTERS(N, "bf16", "1", NAMES, X0, X1, X2, X3, X4, X5, __VA_ARGS__);                               \
      } else {                                                                                                      \
        SYSLAB_REGISTERS(N, "f16", "1", NAMES, X0, X1, X2, X3, X4, X5, __VA_ARGS__);                                \
      }                                                                                                             \
    }                                                                                                               \
    template <typename T>                                                                                           \
    static __device__ __forceinline__ void of_registers_along(float (&d)[N / 8][4], const std::uint32_t (&a)[4],    \
                                                              std::uint64_t b, bool keep) {                         \
      if constexpr (std::is_same_v<T, __nv_bfloat16>) {                                                             \
        SYSLAB_REGISTERS(N, "bf16", "0", NAMES, X0, X1, X2, X3, X4, X5, __VA_ARGS__);                               \
      } else {                                                                                                      \
        SYSLAB_REGISTERS(N, "f16", "0", NAMES, X0, X1, X2, X3, X4, X5, __VA_ARGS__);                                \
      }                                                                                                             \
    }                                                                                                               \
  }

SYSLAB_PRODUCT(32, SYSLAB_NAMES_0 "," SYSLAB_NAMES_1, "%16", "%17", "%18", "%19", "%20", "%21", SYSLAB_EIGHT(0),
               SYSLAB_EIGHT(1));
SYSLAB_PRODUCT(64, SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3, "%32", "%33", "%34", "%35",
               "%36", "%37", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2), SYSLAB_EIGHT(3));
SYSLAB_PRODUCT(80, SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3 "," SYSLAB_NAMES_4, "%40",
               "%41", "%42", "%43", "%44", "%45", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2), SYSLAB_EIGHT(3),
               SYSLAB_EIGHT(4));
SYSLAB_PRODUCT(96,
               SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3 "," SYSLAB_NAMES_4
                              "," SYSLAB_NAMES_5,
               "%48", "%49", "%50", "%51", "%52", "%53", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2),
               SYSLAB_EIGHT(3), SYSLAB_EIGHT(4), SYSLAB_EIGHT(5));
SYSLAB_PRODUCT(112,
               SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3 "," SYSLAB_NAMES_4
                              "," SYSLAB_NAMES_5 "," SYSLAB_NAMES_6,
               "%56", "%57", "%58", "%59", "%60", "%61", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2),
               SYSLAB_EIGHT(3), SYSLAB_EIGHT(4), SYSLAB_EIGHT(5), SYSLAB_EIGHT(6));
SYSLAB_PRODUCT(128,
               SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3 "," SYSLAB_NAMES_4
                              "," SYSLAB_NAMES_5 "," SYSLAB_NAMES_6 "," SYSLAB_NAMES_7,
               "%64", "%65", "%66", "%67", "%68", "%69", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2),
               SYSLAB_EIGHT(3), SYSLAB_EIGHT(4), SYSLAB_EIGHT(5), SYSLAB_EIGHT(6), SYSLAB_EIGHT(7));
SYSLAB_PRODUCT(176,
               SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3 "," SYSLAB_NAMES_4
                              "," SYSLAB_NAMES_5 "," SYSLAB_NAMES_6 "," SYSLAB_NAMES_7 "," SYSLAB_NAMES_8
                              "," SYSLAB_NAMES_9 "," SYSLAB_NAMES_10,
               "%88", "%89", "%90", "%91", "%92", "%93", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2),
               SYSLAB_EIGHT(3), SYSLAB_EIGHT(4), SYSLAB_EIGHT(5), SYSLAB_EIGHT(6), SYSLAB_EIGHT(7), SYSLAB_EIGHT(8),
               SYSLAB_EIGHT(9), SYSLAB_EIGHT(10));
SYSLAB_PRODUCT(192,
               SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3 "," SYSLAB_NAMES_4
                              "," SYSLAB_NAMES_5 "," SYSLAB_NAMES_6 "," SYSLAB_NAMES_7 "," SYSLAB_NAMES_8
                              "," SYSLAB_NAMES_9 "," SYSLAB_NAMES_10 "," SYSLAB_NAMES_11,
               "%96", "%97", "%98", "%99", "%100", "%101", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2),
               SYSLAB_EIGHT(3), SYSLAB_EIGHT(4), SYSLAB_EIGHT(5), SYSLAB_EIGHT(6), SYSLAB_EIGHT(7), SYSLAB_EIGHT(8),
               SYSLAB_EIGHT(9), SYSLAB_EIGHT(10), SYSLAB_EIGHT(11));
SYSLAB_PRODUCT(256,
               SYSLAB_NAMES_0 "," SYSLAB_NAMES_1 "," SYSLAB_NAMES_2 "," SYSLAB_NAMES_3 "," SYSLAB_NAMES_4
                              "," SYSLAB_NAMES_5 "," SYSLAB_NAMES_6 "," SYSLAB_NAMES_7 "," SYSLAB_NAMES_8
                              "," SYSLAB_NAMES_9 "," SYSLAB_NAMES_10 "," SYSLAB_NAMES_11 "," SYSLAB_NAMES_12
                              "," SYSLAB_NAMES_13 "," SYSLAB_NAMES_14 "," SYSLAB_NAMES_15,
               "%128", "%129", "%130", "%131", "%132", "%133", SYSLAB_EIGHT(0), SYSLAB_EIGHT(1), SYSLAB_EIGHT(2),
               SYSLAB_EIGHT(3), SYSLAB_EIGHT(4), SYSLAB_EIGHT(5), SYSLAB_EIGHT(6), SYSLAB_EIGHT(7), SYSLAB_EIGHT(8),
               SYSLAB_EIGHT(9), SYSLAB_EIGHT(10), SYSLAB_EIGHT(11), SYSLAB_EIGHT(12), SYSLAB_EIGHT(13),
               SYSLAB_EIGHT(14), SYSLAB_EIGHT(15));

#undef SYSLAB_NAMES_0
#undef SYSLAB_NAMES_1
#undef SYSLAB_NAMES_2
#undef SYSLAB_NAMES_3
#undef SYSLAB_NAMES_4
#undef SYSLAB_NAMES_5
#undef SYSLAB_NAMES_6
#undef SYSLAB_NAMES_7
#undef SYSLAB_NAMES_8
#undef SYSLAB_NAMES_9
#undef SYSLAB_NAMES_10
#undef SYSLAB_NAMES_11
#undef SYSLAB_NAMES_12
#undef SYSLAB_NAMES_13
#undef SYSLAB_NAMES_14
#undef SYSLAB_NAMES_15
#undef SYSLAB_EIGHT
#undef SYSLAB_SHARED
#undef SYSLAB_REGISTERS
#undef SYSLAB_PRODUCT

}  // namespace syslab::ptx
