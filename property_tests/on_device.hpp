// A law's tensors where the rung works. A law makes its tensors on the host and looks at them there, whatever the rung:
// of a rung on a GPU every guarded memory is mirrored there before the call, guards and gaps with it, and brought back
// after it, so that poison, guards and values are seen as ever.
//
//   OnDevice there(rung.device);
//   rung.forward(problem, {there.view(q), there.view(k), there.view(v), there.view(out), there.view(lse)},
//                workspace, there.stream());
//   there.finish();
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/guard.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"

namespace syslab::property {

class OnDevice {
 public:
  // Why nothing of this kind can be searched here, as the end of a sentence about a rung; nothing when it can.
  static std::optional<std::string> refusal(device::Kind kind);

  // Error(device) for a GPU where there is none that can be used. `lane`: calls of different lanes are queued in
  // streams of their own.
  explicit OnDevice(device::Kind kind, int lane = 0);
  static constexpr int kLanes = 4;

  device::Stream stream() const { return stream_; }
  // The tensor's view where the rung works: its own on the CPU, its mirror's elsewhere. The tensor must stay where it
  // is until finish(). A tensor may be mirrored once a call.
  TensorView view(const check::GuardedTensor& tensor);
  // Waits for what view() copies there, so that a call begins at once; only to be asked before several calls in a row.
  void await_inputs() const;
  // Waits for the call, which throws here what it did wrong, and brings every mirror back.
  void finish();

 private:
  struct Mirror {
    std::byte* host;
    device::Buffer there;
  };
  device::Stream stream_;
  std::vector<Mirror> mirrors_;
};

}  // namespace syslab::property
