// What the hand-outs ask for, as data: every problem of both in their order, with its points, its question in our words
// and each thing to be handed in. reports/deliverables.json; a report has a place for all of it, measured or not.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace syslab::report {

struct Deliverable {
  std::string part;     // "a"; empty where the problem has but one
  std::string kind;     // code, table, figure, answer (in words), derivation
  std::string what;     // one or two sentences
  std::string handout;  // only in this one; empty: wherever the problem is posed
  // What shows it: "flash_forward/speed" (a table or sentence), or all of an experiment's "*" (tables), "sentences",
  // "figures", "laws".
  std::vector<std::string> by;
  bool carries = false;  // its table or figure is the one that a hand-in shows of the problem
};

struct Problem {
  std::string id, title, section, question;  // section: of the hand-out
  std::map<std::string, int> points;         // by hand-out; 0: posed and not graded
  std::vector<Deliverable> deliverables;
};

// Error(internal) when the text is not what it should be.
std::vector<Problem> parse_problems(const std::string& json);

// The embedded ones.
const std::vector<Problem>& handout_problems();

}  // namespace syslab::report
