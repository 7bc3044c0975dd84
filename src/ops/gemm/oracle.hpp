// The exact product, as far as the next wider type is exact, beside the error a correct kernel may make.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/gemm/gemm.hpp"
#include "ops/operation.hpp"
#include "ops/sum_of_products.hpp"

namespace syslab::gemm {

// Row-major over C. Elements that were not computed hold NaN in both; `fraction` is the share of those that were.
struct Oracle {
  std::vector<double> value, tolerance;
  double fraction = 1;
};

struct OracleOptions {
  double budget = 1e8;  // multiply-adds
  std::uint64_t seed = 0;
  double operand_unit = 0;  // the rung's
};

// How far an element may be from `value`; `magnitude` is the sum of its products' absolute values.
SYSLAB_HOST_DEVICE inline double element_bound(const Problem& problem, double operand_unit, double value,
                                               double magnitude) {
  // (1 + δ₁)(1 + δ₂) − 1, worst case: operands that are cut err all to one side.
  const double operands = operand_unit * (2 + operand_unit) * magnitude;
  return operands + ops::sum_of_products_bound(problem.dtype, problem.k, value,
                                               (1 + operand_unit) * (1 + operand_unit) * magnitude);
}

// Whole where m·n·k fits the budget. Beyond it the same number of elements of every row (at least one), at columns
// drawn from the seed, so that every row, and with some thousand elements every tile of the usual sizes, is looked at.
// Sums are carried in fp64, for fp64 problems in long double.
Oracle oracle(const Problem& problem, const ConstTensorView& a, const ConstTensorView& b,
              const OracleOptions& options = {});

// The oracle where a rung on a GPU has its tensors, a and b, whole; empty where there is none (ops::Operation).
using OracleThere = std::function<std::vector<ops::Expected>(const ops::Inputs&, device::Stream)>;
OracleThere oracle_there(const Problem& problem, const Rung& rung);

}  // namespace syslab::gemm
