// What earlier calls of `bisect` measured and the database keeps.
#pragma once

#include <optional>
#include <string>

#include "compare/loss.hpp"
#include "plan/sides.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// Of the same pair under the same label (all that was measured but the revisions) on such a machine (its comparability
// key). Interrupted comparisons do not count.
std::optional<Change> remembered(const store::Store& store, const plan::ComparisonPlan& plan, const std::string& label,
                                 const std::string& machine, std::optional<double> asked_delta);

}  // namespace syslab::cli
