// Which rank of how many this process is, as those who start ranks say it: our own options and variables, torchrun,
// Open MPI, PMI (MPICH, Hydra, Slurm's), Slurm, or nobody. Their libraries are not linked; their variables are read.
//
//   const LaunchEnvironment here = launch_environment(process_variables());
//   // torchrun --no-python --nproc-per-node 2: rank 1 of 2, source "torchrun", rendezvous "tcp://127.0.0.1:29501/…"
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace syslab::comm {

using Variables = std::map<std::string, std::string, std::less<>>;

// What the user said on a command line. Wins over everything.
struct LaunchOptions {
  std::optional<int> rank, size, local_rank, local_size;
  std::string rendezvous;
};

struct LaunchEnvironment {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of its host; where nobody says, all ranks are on one host
  bool one_host = false;               // the source says that all ranks are on one
  std::string host;                    // of rank 0, where the source tells; else empty
  std::string source;                  // "torchrun", "Open MPI", "one process"
  // Where ranks find each other (comm/rendezvous/rendezvous.hpp), derived from what the source tells; empty: it tells
  // too little, and the user must say it (SYSLAB_RENDEZVOUS). Under torchrun's agent, which may itself listen on
  // MASTER_PORT, the port is the one behind it: MASTER_PORT is never bound.
  std::string rendezvous;
};

// In this order of precedence: `options`; SYSLAB_RANK, SYSLAB_WORLD_SIZE, SYSLAB_LOCAL_RANK, SYSLAB_LOCAL_WORLD_SIZE
// and SYSLAB_RENDEZVOUS; RANK and WORLD_SIZE (torchrun); OMPI_COMM_WORLD_*; PMI_*; SLURM_* of a job step; one process.
// Error(usage) names both variables and their values where two of one source contradict each other (a rank not below
// its size, one without the other), and where RANK and WORLD_SIZE, set by hand, contradict Open MPI or PMI.
LaunchEnvironment launch_environment(const Variables& variables, const LaunchOptions& options = {});

Variables process_variables();  // of this process

}  // namespace syslab::comm
