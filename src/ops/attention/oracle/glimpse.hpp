// Rows of a result in double precision, for a look at every timed call (Operation::glimpse): a row costs as much as one
// of S·D products, whatever the whole costs, and what was not computed anew is wrong in all its rows.
#pragma once

#include <cstdint>
#include <vector>

#include "contract/operation.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Tensors in host memory, of any dtype and strides. A few rows of out with their lse, of one head that `random`
// chooses. Glimpse::output counts from 0: out, lse.
std::vector<Glimpse> forward_glimpse(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                                     const ConstTensorView& v, std::uint64_t random);

struct BackwardTensors {
  ConstTensorView q, k, v, out, lse, dout;
};
// A row of each of dq, dk, dv (Glimpse::output 0, 1, 2). dq's is computed from q, k, v, dout alone; dk's and dv's take
// O and L as given, since their own would cost the whole of a head.
std::vector<Glimpse> backward_glimpse(const Problem& problem, const BackwardTensors& given, std::uint64_t random);

}  // namespace syslab::attention
