// The exact rows and gradients beside the error that a correct kernel may make: one rounding where x is narrower than
// the table, and a sum of as many terms as the token comes, carried in fp32 (fp64 for fp64) in any order.
#pragma once

#include <span>

#include "ops/embedding/embedding.hpp"
#include "ops/operation.hpp"

namespace syslab::embedding {

// Rows of an id outside the table are not asked about (NaN).
ops::Expected forward_oracle(const Problem& problem, std::span<const std::int64_t> ids, const ConstTensorView& table);
// `before`: what dtable holds when it is added to; no memory: nothing.
ops::Expected backward_oracle(const Problem& problem, std::span<const std::int64_t> ids, const ConstTensorView& dx,
                              const ConstTensorView& before = {});

}  // namespace syslab::embedding
