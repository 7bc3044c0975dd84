// The exact rows and gradients and the error that a correct kernel may make: one rounding if x is narrower than the
// table, and a sum with one term per occurrence of the token, accumulated in fp32 (fp64 for fp64) in any order.
#pragma once

#include <span>

#include "contract/expected.hpp"
#include "ops/embedding/embedding.hpp"

namespace syslab::embedding {

// Rows with an id outside the table are not checked (NaN).
Expected forward_oracle(const Problem& problem, std::span<const std::int64_t> ids, const ConstTensorView& table);
// `before`: initial contents of dtable when accumulating; otherwise without memory.
Expected backward_oracle(const Problem& problem, std::span<const std::int64_t> ids, const ConstTensorView& dx,
                         const ConstTensorView& before = {});

}  // namespace syslab::embedding
