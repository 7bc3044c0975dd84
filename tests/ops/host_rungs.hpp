// The rungs of a ladder that run without a GPU, for tests that hold tensors on the host. Those on a GPU have tests of
// their own (gpu_*.cpp).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ops/rung.hpp"

namespace syslab::ops {

template <typename Rung>
std::vector<std::reference_wrapper<const Rung>> host_rungs(std::span<const Rung> ladder) {
  std::vector<std::reference_wrapper<const Rung>> rungs;
  for (const Rung& rung : ladder) {
    if (rung.device == device::Kind::cpu) rungs.emplace_back(rung);
  }
  return rungs;
}

}  // namespace syslab::ops
