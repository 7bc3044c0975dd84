// The rungs of accumulation: for this folder alone.
#pragma once

#include "ops/accumulation/accumulation.hpp"

namespace syslab::accumulation {

Rung reference_rung();
Rung host_rung();

}  // namespace syslab::accumulation
