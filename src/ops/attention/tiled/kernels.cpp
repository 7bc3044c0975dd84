#include "ops/attention/tiled/kernels.hpp"

#include <vector>

namespace syslab::attention {

extern const FlashKernels kFlash_base;
#if SYSLAB_X86_KERNELS
extern const FlashKernels kFlash_avx2;
extern const FlashKernels kFlash_avx512;
#endif

std::span<const FlashKernels* const> flash_kernels() {
  static const std::vector<const FlashKernels*> usable = [] {
    std::vector<const FlashKernels*> kernels{&kFlash_base};
#if SYSLAB_X86_KERNELS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) kernels.push_back(&kFlash_avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      kernels.push_back(&kFlash_avx512);
    }
#endif
    return kernels;
  }();
  return usable;
}

}  // namespace syslab::attention
