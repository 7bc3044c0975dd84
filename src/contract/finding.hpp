// What the search of a law found, as fields: who judges, groups, grades or explains reads these. A message is for
// people; only findings of which no field tells more are grouped by its first line.
#pragma once

#include <string>

#include "core/finding_kind.hpp"
#include "core/text/json.hpp"

namespace syslab {

struct Finding {
  FindingKind kind = FindingKind::none;
  bool promised =
      false;  // it fails on an input that is promised: that the hand-out's tests may ask, or that was declared
  bool seldom = false;      // the same input failed and held
  std::string about;        // the tensor that it is about, where it is about one: "q"
  std::string cause;        // what it looks like: "a mask that shows one key too few"; empty: nothing known
  std::string input;        // of a counterexample, in a caller's words: "B=1 H=2 S=64 …"
  std::string first_wrong;  // "out[0, 0, 64, 3], row 0 of tile 1 of 64: found 2, expected 1 ± 1e-6; 16 of 64 elements"
  // Of a law that held: what none of its tries can have been. `small`: it draws small problems alone, others more.
  std::string never_drawn;
  bool small = false;
  bool operator==(const Finding&) const = default;
};

// Sets the fields that say something, under their names; the kind as "finding". On the wire and in --json.
void put(Json& object, const Finding& finding);

}  // namespace syslab
