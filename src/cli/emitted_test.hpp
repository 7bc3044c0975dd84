// A counterexample as a PyTorch test that needs nothing of ours: `check --emit`.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.hpp"

namespace syslab::cli {

// The test's text, for the class that `mine` names, from the artifact that a law leaves (its error map, with the call
// in it); nothing where that has no call: the input is large, or of a form that the class does not take. `law`: what it
// broke.
std::optional<std::string> emitted_test(const std::string& artifact, const Submitted& mine, const std::string& law);

}  // namespace syslab::cli
