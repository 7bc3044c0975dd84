// Is a stored run fit to publish? The rules, one a finding; `doctor RUN` prints them.
#pragma once

#include <vector>

#include "cli/diagnosis.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// `bad`: what a careful reader would object to; `doubtful`: what must be mentioned with the numbers.
std::vector<Finding> judge_for_publication(const store::Store& store, const store::StoredRun& run);

}  // namespace syslab::cli
