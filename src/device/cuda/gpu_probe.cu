#include <cuda_runtime_api.h>

#include "device/cuda/gpu_probe.hpp"
#include "device/cuda/uuid_text.hpp"

namespace syslab::device {

namespace {

// 13000 → "13.0": CUDA packs a version as 1000·major + 10·minor.
std::string readable_version(int packed) {
  return packed == 0 ? std::string() : std::to_string(packed / 1000) + "." + std::to_string(packed % 1000 / 10);
}

std::string describe(const char* call, cudaError_t error) {
  return std::string(call) + ": " + cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ")";
}

}  // namespace

GpuProbe probe_gpus() {
  GpuProbe probe;
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) probe.runtime_version = readable_version(version);
  version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) probe.driver_version = readable_version(version);
  if (probe.driver_version.empty()) {
    probe.why_none = "no NVIDIA driver on this machine (libcuda.so.1 was not found)";
    return probe;
  }
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    probe.why_none = describe("cudaGetDeviceCount", error);
    return probe;
  }
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
      probe.why_none = describe("cudaGetDeviceProperties", error);
      continue;
    }
    Gpu gpu;
    gpu.index = index;
    gpu.name = properties.name;
    gpu.sm = 10 * properties.major + properties.minor;
    gpu.multiprocessors = properties.multiProcessorCount;
    gpu.memory_bytes = properties.totalGlobalMem;
    gpu.uuid = uuid_text(properties.uuid.bytes);
    probe.gpus.push_back(gpu);
  }
  if (!probe.gpus.empty()) {
    probe.why_none.clear();
  } else if (probe.why_none.empty()) {
    probe.why_none = "the driver lists no GPU (CUDA_VISIBLE_DEVICES may hide it)";
  }
  return probe;
}

}  // namespace syslab::device
