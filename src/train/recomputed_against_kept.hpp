// Compares gradients of a model that recomputes activations with those of one that keeps them: equal to the bit, or
// wrong.
#pragma once

#include <cstdint>

#include "model/against_reference.hpp"
#include "train/workload.hpp"

namespace syslab::train {

// On a reduced model with at least two segments, where the model that is asked about has two. The distance is the
// number of elements that differ, the tolerance none. Waits.
StepCheck recomputed_against_kept(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed);

}  // namespace syslab::train
