// The machine that the accounting problems are asked of (the hand-out of 2026).
#pragma once

#include "paper/layer_costs.hpp"

namespace syslab::parallel {

inline constexpr Machine kMachine{.flops_per_second = 4.6e14, .link_bytes_per_second = 1.8e11};

}  // namespace syslab::parallel
