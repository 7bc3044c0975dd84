#include "worker/judged/gpu_memory.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/process/environment_variable.hpp"

namespace syslab::worker {

GpuMemory gpu_memory_wanted() {
  const std::string asked = environment_variable("SYSLAB_GPU_MEMORY");
  if (asked.empty()) return kGpuMemoryByDefault;
  if (asked == "shared") return GpuMemory::shared;
  if (asked == "copied") return GpuMemory::copied;
  if (asked == "trusted") return GpuMemory::trusted;
  throw Error(
      ErrorKind::usage,
      fmt::format("SYSLAB_GPU_MEMORY is '{}'; it may be shared, copied or trusted (docs/environment.md)", asked));
}

std::string gpu_memory_of_others() {
  gpu_memory_wanted();
  const std::string asked = environment_variable("SYSLAB_GPU_MEMORY");
  return asked.empty() ? kGpuMemoryOfOthers : asked;
}

}  // namespace syslab::worker
