// The rungs of our own, for ladder.cpp to list.
#pragma once

#include "ops/attention/attention.hpp"

namespace syslab::attention {

Rung reference_rung();
Rung naive_rung();
Rung flash_tiled_rung();

// Why a rung for these dtypes cannot take the problem; nothing when it can.
std::optional<std::string> refuse_dtype(const std::vector<DType>& dtypes, const Problem& problem);

}  // namespace syslab::attention
