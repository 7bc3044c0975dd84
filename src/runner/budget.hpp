// Which cases of a plan are tried, and what is left of the time for all.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "runner/runner.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

// Not one that is skipped, or asks for more than the machine has, or is predicted to run out of memory.
bool is_tried(const plan::PlannedCase& planned);
AttemptResult not_tried(const plan::PlannedCase& planned);
bool is_failure(Status status);

// Laws that were falsified, here or (Plan::falsified) before: what is wrong gets no time. Those of the hand-out decide
// where a run asks them of an implementation; a failure beyond it is a warning then, as `check` has it.
class FalsifiedLaws {
 public:
  explicit FalsifiedLaws(const plan::Plan& plan);
  void note(const AttemptResult& result);
  // Whether this is a case to be timed, of an implementation that a law has found wrong.
  bool forbid(const plan::PlannedCase& planned) const { return of(planned) != nullptr; }
  // Such a case: Status::skipped, and the law as the fact "falsified_law".
  AttemptResult skipped(const plan::PlannedCase& planned) const;

 private:
  struct Law {
    std::string name, contract;
  };
  void add(const plan::PlannedCase& law);
  const Law* of(const plan::PlannedCase& planned) const;
  std::set<std::pair<std::string, std::string>> handed_out_;  // experiments and implementations with such laws
  std::map<std::pair<std::string, std::string>, Law> laws_;   // of an experiment and implementation, the first
};

// The remaining time of the plan, from its making on.
class Budget {
 public:
  explicit Budget(Nanoseconds total) : total_(total) {}

  // Why the case cannot start; empty: it can.
  std::string refusal(const plan::PlannedCase& planned) const;

 private:
  Nanoseconds total_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace syslab::runner
