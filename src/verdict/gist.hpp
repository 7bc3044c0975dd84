// What two findings have in common when one cure mends both.
#pragma once

#include <string>
#include <vector>

#include "contract/finding.hpp"

namespace syslab::verdict {

// In few words what was met, equal for findings that are one: what it looks like; else the input that a call changed;
// else the first line of the message.
std::string gist(const Finding& finding, const std::string& message);

// Whether both show the same wrong element of the same input.
bool same_counterexample(const Finding& one, const Finding& other);

// Names findings: those that are the same have one name, by an equal gist or the same counterexample.
class SameFindings {
 public:
  std::string name_of(const std::string& implementation, const Finding& finding, const std::string& message);

 private:
  struct Named {
    std::string implementation, gist;
    Finding finding;
  };
  std::vector<Named> known_;
};

}  // namespace syslab::verdict
