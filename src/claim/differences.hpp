// A claim next to what would be claimed here: the same question, asked of this program and this machine.
#pragma once

#include <string>
#include <vector>

#include "claim/claim_file.hpp"

namespace syslab::claim {

// Error(usage) unless both have the same cases of the same experiments, or their numbers mean something else. Of `here`
// only the cases' experiments, versions and axes are read.
void require_same_cases(const File& then, const File& here);

// A line for each thing that a claim says otherwise than `here`, which was measured just now; `here` may have fewer
// cases. `same_kind`: the machines are alike, so that their times should be.
std::vector<std::string> differences(const File& then, const File& here, bool same_kind);

}  // namespace syslab::claim
