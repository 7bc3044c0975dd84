// What all rungs have in common. An operator's folder derives its own Rung from this and exports its ladder:
//
//   std::span<const attention::Rung> attention::ladder();
#pragma once

#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "device/device.hpp"

namespace syslab::ops {

struct RungInfo {
  std::string name;           // "flash_tiled"
  std::string teaches;        // one line: what a reader learns from this rung
  std::vector<DType> dtypes;  // of its tensors
  device::Kind device = device::Kind::cpu;
  int minimum_sm = 0;    // 80 for sm_80; 0 where no GPU is needed
  bool is_peer = false;  // somebody else's, what users would pick instead: a library's
  bool tf32 = false;     // rounds the factors of fp32 products to TF32: no fp32 arithmetic, and judged as what it is
  bool op_by_op =
      false;  // rounds every operation's result as a framework does: judged with what that may add (eager.hpp)
  bool deterministic = true;  // bitwise equal results from equal inputs
  std::string language = "C++";
  std::string digest;  // of the object or source, for rungs that are not ours
  // Why this build is without it ("needs CUDA, which this build has not"); empty: it is there. Such a rung has no entry
  // points: it stands on its ladder so that nobody takes it for forgotten.
  std::string unavailable;
};

// Scratch memory a kernel may use during one call. Empty: the kernel takes and returns its own.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

}  // namespace syslab::ops
