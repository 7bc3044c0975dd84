// Options of the backend "nccl" (comm/nccl/communicator.hpp).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "comm/copy_engines/copy_engines.hpp"
#include "comm/nccl/api.hpp"
#include "device/device.hpp"

namespace syslab::comm {

struct NcclOptions {
  std::string library;  // empty: found by NcclLibrary
  device::Place place{device::Kind::cuda, 0};
  int min_ctas = nccl::kUndefined, max_ctas = nccl::kUndefined;  // blocks per kernel, that is SMs used: 1–64
  int cga_cluster_size = nccl::kUndefined;                       // 0–8
  std::optional<CopyEngineOptions> copy_engines;                 // for operations that they handle; NCCL does the rest
  std::chrono::milliseconds budget{2'000};                       // of ncclCommAbort
  std::function<void()> exit;  // ends the process after that; empty: _exit() with the code of Fault::peer
};

}  // namespace syslab::comm
