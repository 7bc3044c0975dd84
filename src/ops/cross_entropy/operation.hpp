// The passes of the cross-entropy as operations (contract/operation.hpp).
#pragma once

#include <cstdint>

#include "contract/operation.hpp"
#include "ops/cross_entropy/cross_entropy.hpp"

namespace syslab::cross_entropy {

// Inputs logits and targets (prepared, drawn from the seed); for the backward pass also lse, prepared by the rung's
// forward pass. Outputs row_loss, lse, loss; dlogits; or all four. The oracle computes about `oracle_budget` logits in
// rows drawn from the seed; unless that is all rows, it does not check the mean loss (fraction 0).
Operation operation(const Problem& problem, Pass pass, const Rung& rung, std::uint64_t seed,
                    std::int64_t oracle_budget = 20'000'000);

}  // namespace syslab::cross_entropy
