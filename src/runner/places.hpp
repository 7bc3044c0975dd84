// Where the ranks of a case run if a launcher has started several processes (mpirun, torchrun, srun): the worker of
// rank i on the host of the i-th process. agents/ implements the connections; this is the interface for a gang of
// workers. Without a launcher there are no places: all workers run on the lab's host.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "core/process/process.hpp"

namespace syslab::runner {

// A worker's process on this or another host: the counterpart of core/process/process.hpp's Process.
class Hosted {
 public:
  virtual ~Hosted() = default;  // kills its process group

  // Descriptors of its standard input, output and error output.
  virtual int to_child() const = 0;
  virtual int from_child() const = 0;
  virtual int error_output() const = 0;

  // Does not wait. Returns a value only after all its output has arrived; if its end is unknown, ExitStatus::lost says
  // why.
  virtual std::optional<ExitStatus> poll() = 0;
  virtual void kill_group(int signal) = 0;
  virtual pid_t pid() const = 0;                    // −1: another host's
  virtual bool is_out_of_reach() { return false; }  // what it could say may not arrive
  virtual bool is_stopped() = 0;                    // by SIGSTOP or its like, as its host's kernel tells
};

std::unique_ptr<Hosted> start_here(const SpawnOptions& options);  // throws as Process::spawn does

// Error::call() of a worker that could not be started because its place is gone.
inline constexpr const char* kNoPlace = "agent";

class Places {
 public:
  virtual ~Places() = default;

  virtual int ranks() const = 0;  // that there is a place for
  virtual int gpus() const = 0;   // ranks, from 0 on, that have a GPU each
  virtual std::string host(int rank) const = 0;
  virtual int device_index(int rank) const = 0;      // which GPU of those that its process sees is the rank's
  virtual int threads(int rank, int of) const = 0;   // OMP_NUM_THREADS; 0: as its environment says
  virtual std::string rendezvous(int of) const = 0;  // of one case's ranks; empty: a folder of this host will do

  // Error with kNoPlace where its place is gone, or the program cannot be started there.
  virtual std::unique_ptr<Hosted> start(int rank, const SpawnOptions& options) = 0;
};

}  // namespace syslab::runner
