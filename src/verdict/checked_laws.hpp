// What `check` tells at its end of somebody's laws, as values: words/check_words.hpp makes text of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/text/units.hpp"
#include "verdict/law_verdict.hpp"

namespace syslab::verdict {

// A law beyond the hand-out's that failed. Those that are the same count as one finding, whichever laws met them.
struct BeyondFinding {
  std::string same_as;  // as LawFact has it
  std::vector<std::string> laws;
  std::string message, input;
};

// A law that had no time for all of its tries.
struct CutLaw {
  std::string experiment, law;
  bool of_handout = false;
  std::int64_t cases = 0;
};

// What the laws of an operator that held leave out. `by_small`: the law, where that draws small problems alone.
struct LeftOut {
  bool of_handout = false;
  std::string by_small, never_drawn;
};

struct CheckedLaws {
  // What was asked.
  std::string year;  // of the hand-out
  LawsAsked asked;
  int cases = 0;          // tries a law
  Nanoseconds within{};   // that all laws together had for them; 0: as long as they took
  std::string until;      // for how long they went on; empty: no longer
  std::string chosen_by;  // "-k oracle": what left laws out; empty: nothing
  bool of_several_experiments = false, of_ranks = false, on_gpus = false;

  // What was found.
  LawVerdict verdict;
  double first_call_seconds = 0;  // that count in no law's share of the time
  std::vector<BeyondFinding> findings;
  std::vector<std::string> broken;  // laws that fail on what is promised
  std::vector<CutLaw> cut;
  std::map<std::string, std::vector<std::string>> never_tried;  // reason → laws
  std::map<std::string, std::vector<std::string>> open;         // what this Python lacks → laws
  std::map<std::string, LeftOut> left_out;                      // operator → what it leaves out
  std::string mask_command;  // that lets the causal mask decide, which the hand-out does not test; empty: it was asked
};

// "attention.oracle of the hand-out"
inline std::string name_of(const std::string& law, bool of_handout) {
  return of_handout ? law + " of the hand-out" : law;
}

}  // namespace syslab::verdict
