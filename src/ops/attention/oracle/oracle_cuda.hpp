// The oracle of oracle.hpp on a GPU: exact results and the errors that a correct kernel may make, for tensors in device
// memory, whole problems at a time. No tensor is copied to the host.
//
//   const auto expected = forward_expected_cuda(problem, q, k, v, stream);   // of out, of lse
//   … compare on the GPU with expected[0].there.value, expected[0].there.tolerance …
//
// Equal to the CPU's oracle except for the order of sums in double precision; a tolerance may be larger by a relative
// 2⁻¹⁹.
#pragma once

#include <vector>

#include "contract/operation.hpp"
#include "device/device.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/oracle/oracle.hpp"

namespace syslab::attention {

// As Part::budget, for a GPU: an H100 does 1.1e12 per second forward, a quarter of that backward. Enough for 16 causal
// heads of 32,768 tokens, D = 64.
inline constexpr double kDeviceBudget = 1e12;

// Views of device memory with any strides, the last one unit; any dtype. Work is queued on `stream`; if only a part is
// computed, the call waits for it; other elements have value NaN and tolerance 0. Beyond the budget: 32 query rows at a
// time, spread evenly over all heads, including the first and the last. Takes 16 B per output element and 96 B per
// query row.
std::vector<Expected> forward_expected_cuda(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                                            const ConstTensorView& v, device::Stream stream,
                                            const Part& part = {.budget = kDeviceBudget});

// Of dq, dk, dv. Beyond the budget: whole key/value heads with all query heads that read them, at least one. Computes O
// and L itself, as the CPU's does.
std::vector<Expected> backward_expected_cuda(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                                             const ConstTensorView& v, const ConstTensorView& dout,
                                             device::Stream stream, const Part& part = {.budget = kDeviceBudget});

}  // namespace syslab::attention
