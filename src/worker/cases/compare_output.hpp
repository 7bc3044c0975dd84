// Compares an output with the oracle's result, wherever the two are.
#pragma once

#include "check/compare.hpp"
#include "contract/expected.hpp"

namespace syslab::worker {

// `output`: contiguous, in the memory of the stream's device, where the expectation may lie too; else the output is
// copied to the host and compared there. Waits for the stream.
check::Comparison compare_output(const TensorView& output, const Expected& expected, device::Stream stream);

// The part of an output, of 1, that nothing judges: elements that lie beyond their own tolerance, which the wider one
// lets pass. `comparison`: by the wider one.
double unjudged_part(const TensorView& output, const Expected& expected, const check::Comparison& comparison,
                     device::Stream stream);

}  // namespace syslab::worker
