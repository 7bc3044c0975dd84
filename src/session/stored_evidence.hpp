// Which cases of a hand-out's evidence a store holds already.
#pragma once

#include <compare>
#include <cstdint>
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

  // It ended well once, on whatever machine, measured here or vouched for: under its experiment's own protocol with the
  // usual inputs, or, of a law, searched. Running out of memory is an end on this kind of machine where the experiment
  // calls it an answer, under whichever protocol: no count of calls changes what one holds. It is none under
  // --memory-limit, which says nothing of a machine.
  bool holds(const plan::PlannedCase& planned, const plan::Plan& plan) const;
  // Or as somebody else reported it, out of memory on another machine, or under an older version of that protocol: a
  // report shows it, and says so, and `run` measures it anew.
  bool shows(const plan::PlannedCase& planned, const plan::Plan& plan) const;
  // It failed on this kind of machine with this very build, not for a limit of memory, and would again: `resume
  // --failed` tries.
  bool failed_here(const plan::PlannedCase& planned, const plan::Plan& plan) const;

 private:
  // What a measurement is of: a case of a protocol and its version, and, of somebody's own implementation, its file.
  struct Key {
    std::string asked, protocol;  // no protocol: a law, or any
    std::int64_t version = 0;     // 0: any
    std::string digest;
    auto operator<=>(const Key&) const = default;
    Key of_any_version() const { return {asked, protocol, 0, digest}; }
  };
  static Key key_of(const plan::PlannedCase& planned, const plan::Plan& plan);
  // Whether it ran out of memory, and that is an answer.
  static bool ran_out(const plan::PlannedCase& planned, const plan::Plan& plan, const std::set<Key>& out_of_memory);

  std::set<Key> well_, out_of_memory_, failed_, shown_well_, shown_out_of_memory_;
};

}  // namespace syslab::cli
