// The exact product (in the next wider type) and the error that a correct kernel may make.
#pragma once

#include <cstdint>
#include <vector>

#include "contract/operation.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/sum_of_products.hpp"

namespace syslab::gemm {

struct OracleOptions {
  double budget = 1e8;  // multiply-adds
  std::uint64_t seed = 0;
  double operand_unit = 0;  // the rung's
};

// Error bound of an element with exact result `value`; `magnitude` is the sum of its products' absolute values.
SYSLAB_HOST_DEVICE inline double element_bound(const Problem& problem, double operand_unit, double value,
                                               double magnitude) {
  // (1 + δ₁)(1 + δ₂) − 1, worst case: truncated operands all err to one side.
  const double operands = operand_unit * (2 + operand_unit) * magnitude;
  return operands + ops::sum_of_products_bound(problem.dtype, problem.k, value,
                                               (1 + operand_unit) * (1 + operand_unit) * magnitude);
}

// Complete if m·n·k fits the budget. Beyond it the same number of elements of every row (at least one), at columns
// drawn from the seed, so that every row, and with some thousand elements every tile of the usual sizes, is checked.
// Sums are in fp64, for fp64 problems in long double. Elements not computed have value and tolerance NaN.
Expected oracle(const Problem& problem, const ConstTensorView& a, const ConstTensorView& b,
                const OracleOptions& options = {});

// The complete oracle on a GPU for GPU rungs, on tensors a and b; empty if there is none (Operation).
using OracleThere = std::function<std::vector<Expected>(const Inputs&, device::Stream)>;
OracleThere oracle_there(const Problem& problem, const Rung& rung);

}  // namespace syslab::gemm
