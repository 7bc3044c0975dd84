// The names of a ladder's rungs on a GPU, also in a build without CUDA: tests that take them find a new rung by
// themselves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/rung.hpp"

namespace syslab::ops {

template <typename Rung>
std::vector<std::string> gpu_rungs(std::span<const Rung> ladder) {
  std::vector<std::string> names;
  for (const Rung& rung : ladder) {
    if (rung.device == device::Kind::cuda) names.push_back(rung.name);
  }
  return names;
}

}  // namespace syslab::ops
