// What rounding leaves of gradients of Q and K that are nothing: a softmax over one key, or over keys with equal
// values, has zero gradient. What is found there is a difference of equal numbers, and says how they were rounded.
//
// The derivation. Row i of a head has dQ_i = s·Σ_j P_ij·X_ij·K_j and dK_j = s·Σ_i P_ij·X_ij·Q_i with s = 1/√d and
// X_ij = dO_i·V_j − D_i, where D_i = dO_i·O_i or Σ_l P_il·(dO_i·V_l): both of O_i = V_j, so that X is its roundings.
//
//   sums      Both terms are sums of d products, and O of n more, in fp32 (fp64) in any order; exp, the division by the
//             row's sum and O's own rounding there are eight more. |X| ≤ 2·g(d + 2n + 8)·A, A = Σ_d |dO_id·V_jd|, with
//             g(m) = min(γ_m, 4√m·u) of ops/attention/error_bound.hpp. TF32 rounds V in O, dO and V in dO·V: + 3u_t·A
//   one key   P = 1, O = V·1: in half precision V is a number of that, and so are O, dO·V's factors and P. Nothing else
//             is rounded: X has fp32's unit, whatever the tensors are stored in
//   several   The values are as equal as what was computed of equal tokens: the model's own accounting
//             (model::tolerance_of) rounds 12 times a block, here l blocks and three times for V, and P, O and dO·V are
//             rounded to storage once each. √(12l + 6) roundings, each a unit: |X| ≤ c·Z, Z² = (dO_i·V_j)² + Σ_d
//             (dO_id·V_jd)² (P's are common to a row, the others are each element's own)
//   storage   In fp16 X and the elements of dQ and dK (twice: RoPE turns them) are off by 2⁻²⁵ where they underflow
//
// Then ‖dQ_i‖ ≤ s·|X_i|·max_j ‖K_j‖, as Σ_j P = 1. Rows and heads round independently: of dK's sums over i, and of the
// weights' gradient Σ_i dQ_i·x_iᵀ, squares are summed. ‖x‖ ≤ max|gain|·√d_model behind a norm.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/kernels.hpp"
#include "model/precision.hpp"

namespace syslab::model {

// Of one row of one head, over the keys that it sees.
struct QueryRow {
  double products = 0, spread = 0;  // A and Z, the largest
  double query = 0, key = 0;        // ‖Q‖, and the largest ‖K‖
};

// The rows of each call of attention's backward pass, the last layer's first.
using QueryRows = std::vector<std::vector<QueryRow>>;

// For TransformerOptions::plant of a model in fp64 on the CPU: writes down what backward passes are given.
std::function<void(Kernels&)> recording_queries(QueryRows& rows);

struct QueryArithmetic {
  DTypes dtypes;          // of the roundings
  double values = 0;      // c of the above, where there are several keys
  std::int64_t keys = 0;  // at most
  std::int64_t head_dim = 0;
  double input = 0;        // ‖x‖
  double of_gradient = 1;  // the rows' dO is this often what the model's is
};

// The norms of what is found of the gradients of Q's and K's weights.
struct QueryRounding {
  double queries = 0, keys = 0;
};
QueryRounding rounding_of_queries(const std::vector<QueryRow>& rows, const QueryArithmetic& arithmetic);

}  // namespace syslab::model
