// Compares whole training steps of a precision and variant with those of the float64 reference, on the reduced model:
// the optimizer and, of Variant::graph, recording and replay too.
#pragma once

#include <cstdint>

#include "model/against_reference.hpp"
#include "train/workload.hpp"

namespace syslab::train {

inline constexpr int kCheckedSteps = 3;  // one by one, recorded, replayed

// The relative distance of all weights after kCheckedSteps steps from the same weights over the same tokens. Tolerance:
// that of the gradients (model/against_reference.hpp). AdamW takes a whole step where a gradient is of the size of its
// rounding: weights that are off by no more than that may do (train/reach_of_rounding.hpp) are not off, and after each
// step the reference goes on with them as they were found. Waits.
StepCheck steps_against_reference(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed);

}  // namespace syslab::train
