// Worker processes according to the isolation: a fresh one per case, or one for many cases.
#pragma once

#include <map>
#include <optional>
#include <string>

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

class Workers {
 public:
  explicit Workers(const RunOptions& options) : options_(options) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { retire(); }

  // `fresh`: one of its own even where workers are reused. At most one lease at a time. Throws what WorkerProcess does.
  Lease take(const worker::CaseRequest& request, bool fresh);
  // After a case: whether the worker may take another. One that is not shared has ended by then.
  void give_back(bool reusable);
  // Ends the idle worker, if any: sends `bye` and waits for its exit.
  void retire();

 private:
  const RunOptions& options_;
  std::optional<WorkerProcess> worker_;
  std::map<std::string, std::string> environment_;  // of worker_
  bool shared_ = false;
  int spawned_ = 0, cases_ = 0;
};

}  // namespace syslab::runner
