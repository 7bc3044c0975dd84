// The passes of the embedding as operations (ops/operation.hpp).
#pragma once

#include <cstdint>

#include "ops/embedding/embedding.hpp"
#include "ops/operation.hpp"

namespace syslab::embedding {

// Inputs ids (prepared, drawn from the seed) and table, or ids and dx; outputs x, or dtable.
ops::Operation operation(const Problem& problem, Direction direction, const Rung& rung, std::uint64_t seed);

}  // namespace syslab::embedding
