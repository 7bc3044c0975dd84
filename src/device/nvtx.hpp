// Named ranges that NVIDIA's profilers show. Without a profiler, and without CUDA, they cost next to nothing.
//
//   const NvtxRange range("check");                                  // until the end of the scope
//   const NvtxRange named("case " + experiment + " " + implementation);
#pragma once

#include <string>

namespace syslab::device {

// From construction to destruction, on this thread.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name);
  explicit NvtxRange(const std::string& name) : NvtxRange(name.c_str()) {}
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange();
};

}  // namespace syslab::device
