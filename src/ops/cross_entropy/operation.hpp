// The passes of the cross-entropy as operations (ops/operation.hpp).
#pragma once

#include <cstdint>

#include "ops/cross_entropy/cross_entropy.hpp"
#include "ops/operation.hpp"

namespace syslab::cross_entropy {

// Inputs logits and targets (prepared, drawn from the seed); of the backward pass also lse, which the rung's forward
// pass prepares. Outputs row_loss, lse, loss; dlogits; or all four. The oracle computes about as many rows, drawn from
// the seed, as `oracle_budget` logits are; unless it is all of them, it says nothing of the mean loss (fraction 0).
ops::Operation operation(const Problem& problem, Pass pass, const Rung& rung, std::uint64_t seed,
                         std::int64_t oracle_budget = 20'000'000);

}  // namespace syslab::cross_entropy
