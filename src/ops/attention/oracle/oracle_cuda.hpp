// The oracle of oracle.hpp on a GPU: exact results and the errors that a correct kernel may make, for tensors in device
// memory, whole problems at a time. Nothing of the size of a tensor comes to the host.
//
//   const auto expected = forward_expected_cuda(problem, q, k, v, stream);   // of out, of lse
//   … compare on the GPU with expected[0].value_there, expected[0].tolerance_there …
//
// Equal to the CPU's oracle but for the order of sums in double precision; a tolerance may be larger by 2⁻¹⁹ of itself.
#pragma once

#include <vector>

#include "device/device.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/oracle/oracle.hpp"
#include "ops/operation.hpp"

namespace syslab::attention {

// As Part::budget, for a GPU: an H100 does 1.1e12 a second forward, a quarter of that backward. Holds 16 causal heads
// of 32,768 tokens, D = 64.
inline constexpr double kDeviceBudget = 1e12;

// Views of device memory with any strides, the last one unit; any dtype. Work is queued on `stream`; where a part is
// chosen, the call waits for it; what is not computed has NaN as its value and 0 as its tolerance. Beyond the budget:
// 32 query rows at a time, spread evenly over all heads, the first and the last among them. Takes 16 B an output
// element and 96 B a query row.
std::vector<ops::Expected> forward_expected_cuda(const Problem& problem, const ConstTensorView& q,
                                                 const ConstTensorView& k, const ConstTensorView& v,
                                                 device::Stream stream, const Part& part = {.budget = kDeviceBudget});

// Of dq, dk, dv. Beyond the budget: whole key/value heads with all query heads that read them, at least one. Takes no O
// and L, as the CPU's.
std::vector<ops::Expected> backward_expected_cuda(const Problem& problem, const ConstTensorView& q,
                                                  const ConstTensorView& k, const ConstTensorView& v,
                                                  const ConstTensorView& dout, device::Stream stream,
                                                  const Part& part = {.budget = kDeviceBudget});

}  // namespace syslab::attention
