// RapidCheck behind one function: runs a property under a LawRequest's budget and tells all that `replay` needs.
#pragma once

#include <functional>

#include "check/law.hpp"

namespace syslab::check {

// How a message says that the same input failed and held.
inline constexpr std::string_view kNowAndThen = "it strikes now and then";

// `property` draws its inputs with RapidCheck's generators (`*gen.as("name")`), reports errors into the observation,
// and throws or fails RC_ASSERT to falsify. Unsupported, Refusal and RC_PRE discard the case; Error(comm) and
// Error(oom) mean that the implementation could not be asked, and end the search in error, without shrinking unless
// it revives. Shrinking stops after `shrink_tries` attempts or `shrink_time`; then the smallest counterexample found is
// run once more to fill the message and the observation.
LawResult search(const std::string& id, const LawRequest& request, const std::function<void(Observation&)>& property);

}  // namespace syslab::check
