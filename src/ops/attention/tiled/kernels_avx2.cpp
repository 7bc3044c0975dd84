// For AVX2 and FMA: 16 registers hold 6×2 sums, 2 columns and a factor.
#include "ops/attention/tiled/micro.hpp"

namespace syslab::attention {

extern const FlashKernels kFlash_avx2;
constexpr FlashKernels kFlash_avx2 = Micro<8, 6>::table("avx2");

}  // namespace syslab::attention
