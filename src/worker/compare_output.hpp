// An output with what the oracle says of it, wherever the two lie.
#pragma once

#include "check/compare.hpp"
#include "worker/operator_case.hpp"

namespace syslab::worker {

// `output`: contiguous, in the memory of the stream's device, where the expectation may lie too; else the output is
// copied to the host and compared there. Waits for the stream.
check::Comparison compare_output(const TensorView& output, const Expectation& expected, device::Stream stream);

}  // namespace syslab::worker
