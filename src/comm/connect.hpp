// Makes a communicator for a process that is one rank of several, however it was started.
//
//   const auto ranks = comm::connect({.backend = "shm", .limit = 30s});          // mpirun, srun, torchrun: as they say
//   const auto ranks = comm::connect({.rendezvous = "file:/tmp/x", .rank = 1, .size = 4, .backend = "shm"});
//
// Ranks meet at a rendezvous (comm/rendezvous/rendezvous.hpp), compare what must be the same, join the control plane
// (comm/rendezvous/control.hpp), which monitors them from then on, and the backend's own peers. A single rank meets
// nobody.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "comm/gloo/gloo.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/rendezvous/agree.hpp"
#include "comm/rendezvous/launch_environment.hpp"

namespace syslab::comm {

struct ConnectOptions {
  std::string rendezvous;         // empty: as the launcher's variables say
  std::optional<int> rank, size;  // likewise
  std::string backend = "shm";    // or "local", "gloo", "nccl", "copy_engines"
  std::chrono::milliseconds limit = kLimitOfWaits;
  bool check_signatures = false;
  GlooChecks gloo = GlooChecks::signatures;
  Fields agree;           // other values that must be equal on all ranks: configuration, parameters, plan
  NcclOptions nccl;       // `place` is overwritten if local_gpu is set
  bool local_gpu = true;  // nccl: the GPU of this rank's number among the ranks of its host
  // Folder for the flight recorder (recorder-RANK.json) if the ranks end early; empty: not written.
  std::filesystem::path dump;
};

// Error(usage) for a backend that does not exist or does not support the request (listing the backends), and for
// contradictory variables; Error(comm) if the ranks do not meet within the limit or disagree.
std::unique_ptr<Communicator> connect(const ConnectOptions& options);

}  // namespace syslab::comm
