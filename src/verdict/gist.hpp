// What two findings have in common when one cure mends both.
#pragma once

#include <string>

#include "contract/finding.hpp"

namespace syslab::verdict {

// In few words what was met, equal for findings that are one: what it looks like; else the input that a call changed;
// else the first line of the message.
std::string gist(const Finding& finding, const std::string& message);

// Whether both show the same wrong element of the same input.
bool same_counterexample(const Finding& one, const Finding& other);

}  // namespace syslab::verdict
