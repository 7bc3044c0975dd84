// The graded parts of a hand-out: what each is worth, and how many things are to be handed in for it.
#pragma once

#include <string>
#include <vector>

namespace syslab::evidence {

struct Part {
  std::string problem;
  std::string letter;  // "a"; empty where the problem has but one
  double points = 0;
  int deliverables = 0;
  std::string name() const { return letter.empty() ? problem : problem + " (" + letter + ")"; }
};

// In the hand-out's order: deliverables from reports/deliverables.json, points from tools/rubric/rubric.json.
// Error(usage) for a hand-out that there is not.
std::vector<Part> parts_of(const std::string& handout);

}  // namespace syslab::evidence
