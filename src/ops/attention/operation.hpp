// The passes of attention as operations (ops/operation.hpp).
#pragma once

#include <cstdint>

#include "ops/attention/autograd.hpp"
#include "ops/operation.hpp"

namespace syslab::attention {

// What one timed call is. `both`: a forward pass and then the backward pass on what it made.
enum class Phase { forward, backward, both };
Phase parse_phase(std::string_view text);  // "forward", "backward", "both"; Error(usage) otherwise
Phase phase_from(const Params& params);    // of the axis "pass"
std::string_view to_string(Phase phase);

// Inputs q, k, v; of backward also out, lse (made by our own forward pass, so that every implementation is given the
// same ones) and dout; of both, dout. Outputs out, lse; of backward dq, dk, dv; of both, all five. `seed` chooses the
// part that the oracle computes of large problems. The rung's workspace is lent and kept. In half precision `naive` is
// set unless the rung is the naive one, or its scores would take more than a gigabyte; it reads the same inputs, of
// backward the same out and lse.
//
// Of a rung that keeps more than L, backward has another input, `saved`, which its own forward pass makes together with
// out and lse; forward and both take that memory with the workspace.
ops::Operation operation(const Problem& problem, Phase phase, const AutogradRung& rung, std::uint64_t seed);
ops::Operation operation(const Problem& problem, Phase phase, const Rung& rung, std::uint64_t seed);

// The first reason not to, of the directions that the phase has.
std::optional<std::string> refusal(const AutogradRung& rung, const Problem& problem, Phase phase);
std::optional<std::string> refusal(const Rung& rung, const Problem& problem, Phase phase);

// In use when a forward pass has ended and the backward pass has not begun.
struct LiveBytes {
  double tensors = 0;  // q, k, v, out
  double kept = 0;     // lse, and what else the rung saved
};
LiveBytes bytes_before_backward(const Problem& problem, const AutogradRung& rung);

double flops(const Problem& problem, Phase phase);
double bytes(const Problem& problem, Phase phase);  // each input read once, each output written once
// Inputs and outputs once, and what the autograd rung of that name keeps and works in; of other implementations
// neither.
double predicted_bytes(const Problem& problem, Phase phase, std::string_view rung);

}  // namespace syslab::attention
