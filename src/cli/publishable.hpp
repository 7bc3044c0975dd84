// Is a stored run fit to publish? The rules, one a finding; `doctor RUN` prints them.
#pragma once

#include <vector>

#include "cli/diagnosis.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// `bad` is what a careful reader would hold against the numbers; `doubtful` is what must be said beside them.
std::vector<Finding> judge_for_publication(const store::Store& store, const store::StoredRun& run);

}  // namespace syslab::cli
