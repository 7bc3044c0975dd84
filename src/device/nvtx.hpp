// Named ranges of a thread: NVIDIA's profilers show them, and whoever listens (trace/recorder.hpp) is told of them too.
// With neither, and without CUDA, they cost next to nothing.
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

// What a range is to whoever reads a timeline.
enum class RangeKind : std::uint8_t {
  scope,   // of the lab: a case, its check
  phase,   // "forward", "backward", "optimizer"
  layer,   // "layers.3"
  part,    // of a layer, or of an operator: "attention", "softmax"
  kernel,  // one call of an operator: on the CPU what a kernel is on a GPU, there what its kernels belong to
};
std::string_view to_string(RangeKind kind);  // "phase"

// Told of a thread's ranges as they begin and end, inner ones first to end. Neither function may throw: ranges end in
// destructors.
class RangeListener {
 public:
  virtual ~RangeListener() = default;
  // `kernel` names who does the work of a range of kind kernel, a rung or a library; `stream` is where it is queued.
  virtual void begin(const char* name, RangeKind kind, Stream stream, std::string_view kernel) noexcept = 0;
  virtual void end() noexcept = 0;
};

// `listener` hears the ranges of this thread while this lives; it must outlive it. The inner one counts. A range that
// began before is not told of.
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
  RangeListener* listener_;  // who heard it begin; null: nobody
};

}  // namespace syslab::device
