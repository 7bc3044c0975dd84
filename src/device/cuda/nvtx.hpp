// Named ranges of a thread: NVIDIA's profilers show them, and a listener (trace/recorder.hpp) receives them. With
// neither, and without CUDA, they cost almost nothing.
//
//   const NvtxRange range("check");                                  // until the end of the scope
//   const NvtxRange named("case " + experiment + " " + implementation);
//   const NvtxRange layer("layers.3", RangeKind::layer);
//   const NvtxRange call("rms_norm", RangeKind::kernel, stream, rung.name);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "device/device.hpp"

namespace syslab::device {

// What a range stands for in a timeline.
enum class RangeKind : std::uint8_t {
  scope,   // a step of the lab: a case, its check
  phase,   // "forward", "backward", "optimizer"
  layer,   // "layers.3"
  part,    // part of a layer or an operator: "attention", "softmax"
  kernel,  // one call of an operator: on the CPU the counterpart of a kernel, on a GPU the owner of its kernels
};
std::string_view to_string(RangeKind kind);  // "phase"

// Notified when a thread's ranges begin and end; inner ones end first. Neither function may throw: ranges end in
// destructors.
class RangeListener {
 public:
  virtual ~RangeListener() = default;
  // `kernel` names the rung or library that does the work of a range of kind kernel; `stream` is where it is queued.
  virtual void begin(const char* name, RangeKind kind, Stream stream, std::string_view kernel) noexcept = 0;
  virtual void end() noexcept = 0;
};

// `listener` receives the ranges of this thread during this object's lifetime and must outlive it. The innermost
// applies. Ranges that began earlier are not reported.
class Listening {
 public:
  explicit Listening(RangeListener& listener);
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening();

 private:
  RangeListener* before_;
};

// From construction to destruction, on this thread.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name, RangeKind kind = RangeKind::scope, Stream stream = {},
                     std::string_view kernel = {});
  explicit NvtxRange(const std::string& name, RangeKind kind = RangeKind::scope) : NvtxRange(name.c_str(), kind) {}
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange();

 private:
  RangeListener* listener_;  // the one told of its begin; null: none
};

}  // namespace syslab::device
