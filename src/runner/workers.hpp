// Worker processes according to the isolation: a fresh one per case, or one for many cases. Each Python implementation
// on the CPU has one of its own, which is stopped while another's case runs: importing a framework takes seconds, and
// whatever a class has left running must not disturb what is measured next.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/runner.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

// A worker for one case or launch.
struct Lease {
  WorkerProcess* worker = nullptr;
  int ordinal = 1;       // which process of this run, from 1
  int cases_before = 0;  // that it has taken
  bool shared = false;   // it lives on after a case that ends well
};

// Nobody knows what a class keeps, so none waits with that unless a quarter of the machine's memory is available.
bool has_plenty_of_memory();

class Workers {
 public:
  explicit Workers(const RunOptions& options) : options_(options) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  // `fresh`: one of its own even where workers are reused. At most one lease at a time. Throws what WorkerProcess does.
  Lease take(const worker::CaseRequest& request, bool fresh);
  // After a case: whether the worker may take another. One that is not shared has ended by then.
  void give_back(bool reusable);
  // No further case of the implementation comes: its worker may be the next one's.
  void give_up(const std::string& implementation);
  // Stops the idle worker, if any, or ends it: nothing of it runs, and it has no memory of a GPU.
  void set_aside();

 private:
  struct Member {
    WorkerProcess process;
    std::map<std::string, std::string> environment;
    bool shared = false, keeps_imports = false;
    int ordinal = 1, cases = 0;
    std::string owner;  // the implementation whose imports it keeps; empty: anybody's
  };

  static void retire(std::unique_ptr<Member> member);

  const RunOptions& options_;
  std::unique_ptr<Member> current_;
  std::vector<std::unique_ptr<Member>> aside_;  // stopped
  int spawned_ = 0;
};

}  // namespace syslab::runner
