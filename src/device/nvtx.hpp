// Named ranges that NVIDIA's profilers show. Without a profiler, and without CUDA, they cost next to nothing.
#pragma once

namespace syslab::device {

// From construction to destruction, on this thread.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name);
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange();
};

}  // namespace syslab::device
