// Replaces gpu_probe.cu in builds without the CUDA toolkit.
#include "device/cuda/gpu_probe.hpp"

namespace syslab::device {

GpuProbe probe_gpus() {
  GpuProbe probe;
  probe.why_none = "built without CUDA: configure with -Dcuda=enabled on a machine that has nvcc";
  return probe;
}

}  // namespace syslab::device
