// The passes of attention as operations (contract/operation.hpp).
#pragma once

#include <cstdint>

#include "contract/operation.hpp"
#include "ops/attention/autograd.hpp"

namespace syslab::attention {

// Inputs q, k, v; for backward also out, lse (from our own forward pass, so that every implementation gets the same)
// and dout; for both, also dout. Outputs out, lse; for backward dq, dk, dv; for both, all five. For large problems the
// oracle computes a part chosen by `seed`. The rung's workspace is kept between calls. In half precision `naive` is set
// unless the rung is the naive one, or its scores would take more than a gigabyte; it reads the same inputs, for
// backward the same out and lse.
//
// For a rung that saves more than L, backward has another input, `saved`, which its own forward pass produces together
// with out and lse; forward and both allocate that memory with the workspace.
Operation operation(const Problem& problem, Pass pass, const AutogradRung& rung, std::uint64_t seed);
Operation operation(const Problem& problem, Pass pass, const Rung& rung, std::uint64_t seed);

// Why the rung cannot take the problem: the first reason among its passes.
std::optional<std::string> refusal(const AutogradRung& rung, const Problem& problem, Pass pass);
std::optional<std::string> refusal(const Rung& rung, const Problem& problem, Pass pass);

// Memory in use between the forward and the backward pass.
struct LiveBytes {
  double tensors = 0;  // q, k, v, out
  double kept = 0;     // lse, and whatever else the rung saved
};
LiveBytes bytes_before_backward(const Problem& problem, const AutogradRung& rung);

double flops(const Problem& problem, Pass pass);
double bytes(const Problem& problem, Pass pass);  // each input read once, each output written once
// Inputs and outputs, plus the saved memory and workspace of the autograd rung of that name; other implementations
// count only inputs and outputs.
double predicted_bytes(const Problem& problem, Pass pass, std::string_view rung);

}  // namespace syslab::attention
