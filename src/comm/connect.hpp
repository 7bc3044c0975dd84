// The way to a communicator for a process that is one rank of several, however it was started.
//
//   const auto ranks = comm::connect({.backend = "shm", .limit = 30s});          // mpirun, srun, torchrun: as they say
//   const auto ranks = comm::connect({.rendezvous = "file:/tmp/x", .rank = 1, .size = 4, .backend = "shm"});
//
// Ranks meet at a store (comm/rendezvous/rendezvous.hpp), compare what must be the same, join the control plane
// (comm/rendezvous/control.hpp), which watches over them from then on, and the backend's own peers. One rank alone
// meets nobody.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/gloo/gloo.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/rendezvous/agree.hpp"
#include "comm/rendezvous/launch_environment.hpp"

namespace syslab::comm {

struct ConnectOptions {
  std::string rendezvous;         // empty: as the launcher's variables say
  std::optional<int> rank, size;  // likewise
  std::string backend = "shm";    // one of backend_names()
  std::chrono::milliseconds limit{60'000};
  bool check_signatures = false;
  GlooChecks gloo = GlooChecks::signatures;
  Fields agree;           // what else must be the same on all ranks: configuration, parameters, plan
  NcclOptions nccl;       // `place` is overwritten where local_gpu is set
  bool local_gpu = true;  // nccl: the GPU of this rank's number among the ranks of its host
  // Where the flight recorder goes, as recorder-RANK.json, when the ranks end before their time; empty: nowhere.
  std::filesystem::path dump;
};

// Those of this build: "local", "shm", "nccl", …
std::vector<std::string_view> backend_names();

// Error(usage) for a backend that does not exist or does not do what is asked (naming those that there are), and for
// variables that contradict each other; Error(comm) when the ranks do not come together within the limit or disagree.
std::unique_ptr<Communicator> connect(const ConnectOptions& options);

}  // namespace syslab::comm
