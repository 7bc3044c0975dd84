// The GPUs that this process can use, or the reason why there are none.
//
// Probing opens the CUDA driver, so only worker processes and the short-lived probe child do it; the parent of a run
// never does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syslab::device {

struct Gpu {
  int index = 0;     // CUDA's ordinal in this process
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int sm = 0;        // compute capability: 90 for 9.0
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  std::string uuid;  // "GPU-6ed1…": the same in every process, whatever CUDA_VISIBLE_DEVICES says
};

struct GpuProbe {
  std::vector<Gpu> gpus;
  std::string runtime_version;  // the CUDA runtime linked into this binary, "13.0"; empty without CUDA
  std::string driver_version;   // the newest CUDA that the driver supports, "12.8"; empty without a driver
  std::string why_none;         // empty if and only if there is a GPU
};

// Never throws: a machine without a GPU is normal.
GpuProbe probe_gpus();

}  // namespace syslab::device
