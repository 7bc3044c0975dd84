// For every processor with 128-bit vectors.
#include "ops/attention/tiled/micro.hpp"

namespace syslab::attention {

extern const FlashKernels kFlash_base;
constexpr FlashKernels kFlash_base = Micro<4, 6>::table("baseline");

}  // namespace syslab::attention
