#include "device/properties.hpp"

#include "device/cuda/cuda.cuh"
#include "device/cuda/runtime.hpp"
#include "device/cuda/uuid_text.hpp"

namespace syslab::device::runtime {

DeviceProperties properties(int index) {
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, index), "ask what GPU " + std::to_string(index) + " is",
        "cudaGetDeviceProperties");
  DeviceProperties made;
  made.name = found.name;
  made.sm = 10 * found.major + found.minor;
  made.multiprocessors = found.multiProcessorCount;
  made.cache_bytes = static_cast<std::uint64_t>(found.l2CacheSize);
  made.shared_bytes_per_block = found.sharedMemPerBlockOptin;
  made.memory_bytes = found.totalGlobalMem;
  made.uuid = uuid_text(found.uuid.bytes);
  return made;
}

}  // namespace syslab::device::runtime
