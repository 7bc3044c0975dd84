// RapidCheck behind one function: runs a property under a LawRequest's budget and tells all that `replay` needs.
#pragma once

#include <functional>

#include "check/law.hpp"

namespace syslab::check {

// `property` draws its inputs with RapidCheck's generators (`*gen.as("name")`), reports errors into the observation,
// and throws or fails RC_ASSERT to falsify. Unsupported, Refusal and RC_PRE discard the case; Error(comm) and
// Error(oom) mean that the implementation could not be asked, and end the search in error, without shrinking unless
// it revives. Shrinking stops after `shrink_tries` attempts or `shrink_time`; then the smallest counterexample found is
// run once more to fill the message and the observation.
LawResult search(const std::string& id, const LawRequest& request, const std::function<void(Observation&)>& property);

// A law of the full contract that met a severe fault (core/finding_kind.hpp) is searched once more among the inputs
// that the hand-out asks, by `search_promised`: where it fails there too, `found` is promised. Shrinking leads out of
// what is promised, so the first counterexample does not tell. That takes as long as the law itself may search, by the
// same clock, and kMostOfPromised where the law has no limit; `found` says how long it took.
inline constexpr std::chrono::seconds kMostOfPromised{5};
void look_in_promised(const LawRequest& request, LawResult& found,
                      const std::function<LawResult(const LawRequest&)>& search_promised);

}  // namespace syslab::check
