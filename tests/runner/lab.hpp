// A runner with the self-test worker at its other end, and what the observer was told.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runner/runner.hpp"

namespace syslab::runner {

// What `syslab worker` is, with the self-tests only.
inline std::vector<std::string> worker_host() { return {std::getenv("SYSLAB_TEST_WORKER")}; }

struct Lab {
  registry::Experiment faults, empty;
  RunOptions options;
  std::vector<AttemptResult> results;
  std::vector<std::string> events;
  Observer observer;

  Lab() {
    faults.id = "selftest_faults";
    empty.id = "selftest_empty";
    options.worker_command = worker_host();
    options.timeout = std::chrono::seconds(20);
    observer.started = [this](const plan::PlannedCase& it) { events.push_back("started " + it.case_uid); };
    observer.progress = [this](const plan::PlannedCase& it, const worker::ProgressRecord& record) {
      events.push_back("progress " + it.case_uid + ": " + record.text);
    };
    observer.finished = [this](AttemptResult result) {
      events.push_back("finished " + result.planned->case_uid);
      results.push_back(std::move(result));
    };
  }

  plan::PlannedCase fault(const std::string& name) const {
    plan::PlannedCase planned;
    planned.experiment = &faults;
    planned.params = {{"fault", name}};
    planned.implementation = "selftest";
    planned.case_uid = name;
    return planned;
  }
  // Returns the last result: the plan outlives it here.
  const AttemptResult& run(const std::vector<std::string>& names) {
    for (const std::string& name : names) plan.cases.push_back(fault(name));
    all_finished = run_plan(plan, options, observer);
    return results.back();
  }

  plan::Plan plan;
  bool all_finished = false;
};

// Children of this process that are still there, stopped ones included; or only those in this state of proc(5).
inline int workers_alive(const std::string& wanted = "") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string number, name, state;
    pid_t parent = 0;
    if (stat >> number >> name >> state >> parent && parent == ::getpid() && state != "Z" &&
        (wanted.empty() || state == wanted)) {
      ++count;
    }
  }
  return count;
}

}  // namespace syslab::runner
