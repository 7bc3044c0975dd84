// The passes of the embedding as operations (contract/operation.hpp).
#pragma once

#include <cstdint>

#include "contract/operation.hpp"
#include "ops/embedding/embedding.hpp"

namespace syslab::embedding {

// Inputs ids (prepared, drawn from the seed) and table, or ids and dx; outputs x, or dtable.
Operation operation(const Problem& problem, Pass pass, const Rung& rung, std::uint64_t seed);

}  // namespace syslab::embedding
