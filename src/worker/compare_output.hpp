// Compares an output with the oracle's result, wherever the two are.
#pragma once

#include "check/compare.hpp"
#include "contract/expected.hpp"

namespace syslab::worker {

// `output`: contiguous, in the memory of the stream's device, where the expectation may lie too; else the output is
// copied to the host and compared there. Waits for the stream.
check::Comparison compare_output(const TensorView& output, const Expected& expected, device::Stream stream);

}  // namespace syslab::worker
