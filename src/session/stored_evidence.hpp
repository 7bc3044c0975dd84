// Which cases of a hand-out's evidence a store holds already.
#pragma once

#include <set>
#include <string>

#include "plan/plan.hpp"
#include "store/store.hpp"

namespace syslab::cli {

class StoredEvidence {
 public:
  StoredEvidence() = default;  // nothing is there
  // `timeout`: of a case now. One that was given less before is not taken for one that would fail again.
  StoredEvidence(const store::Store& store, Nanoseconds timeout);

  // It ended well once, on whatever machine: measured under its experiment's own protocol with the usual inputs, or, of
  // a law, searched. Running out of memory is an end where the experiment calls it an answer, under whichever protocol:
  // no count of calls changes what one holds. It is none under --memory-limit, which says nothing of a machine.
  bool holds(const plan::PlannedCase& planned, const plan::Plan& plan) const;
  // Or under an older version of that protocol: a report shows it, with the version, and `run` measures it anew.
  bool shows(const plan::PlannedCase& planned, const plan::Plan& plan) const;
  // It failed on this kind of machine with this very build, not for a limit of memory, and would again: `resume
  // --failed` tries.
  bool failed_here(const plan::PlannedCase& planned, const plan::Plan& plan) const;

 private:
  bool there(const plan::PlannedCase& planned, const plan::Plan& plan, const std::string& one) const;

  std::set<std::string> well_, out_of_memory_, failed_;
};

}  // namespace syslab::cli
