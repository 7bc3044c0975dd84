// Claims about programs. They take nothing that syslab draws, so what the question says of inputs means nothing there.
#pragma once

#include <vector>

#include "claim/claim_file.hpp"

namespace syslab::claim {

bool is_of_programs(const File& file);

// What `claim` writes for programs, whatever its options were.
void take_inputs_of_programs(Question& question);

// Adds what a claim about programs says of its inputs or experiments, and `claim` would not have written.
void add_invented_inputs(std::vector<Alteration>& found, const File& file);

}  // namespace syslab::claim
