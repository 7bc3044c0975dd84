// For AVX-512: 32 registers hold 12×2 sums, 2 columns and a factor.
#include "ops/attention/tiled/micro.hpp"

namespace syslab::attention {

extern const FlashKernels kFlash_avx512;
constexpr FlashKernels kFlash_avx512 = Micro<16, 12>::table("avx512");

}  // namespace syslab::attention
