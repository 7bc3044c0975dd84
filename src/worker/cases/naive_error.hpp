// The comparison for half-precision kernels: the naive kernel of the same dtype on the same inputs.
#pragma once

#include <vector>

#include "contract/operation.hpp"

namespace syslab::worker {

// Calls `naive`, which overwrites the outputs, and gives the largest error of each, in the output's unit: infinite or
// NaN where an element is. Waits for the stream.
std::vector<double> naive_errors(const OperationCall& naive, const Inputs& inputs, const Outputs& outputs,
                                 const std::vector<Expected>& expected, device::Stream stream);

}  // namespace syslab::worker
