#include <fmt/format.h>

#include "ops/expect_tensor.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

std::string to_string(const Problem& problem) {
  return fmt::format("rows={} dim={} dtype={}", problem.rows, problem.dim, to_string(problem.dtype));
}

namespace {

double elements(const Problem& p) { return static_cast<double>(p.rows) * static_cast<double>(p.dim); }

}  // namespace

double forward_bytes(const Problem& problem) {
  return 3 * elements(problem) * static_cast<double>(size_of(problem.dtype));
}

double backward_bytes(const Problem& problem, bool recompute) {
  return (recompute ? 6 : 5) * elements(problem) * static_cast<double>(size_of(problem.dtype));
}

// Forward: e^−t, 1 + it, the division, two products. Backward, besides: 1 − σ, its product with t, the addition of 1,
// and a product each for dup, up·σ, dout and the last.
double forward_flops(const Problem& problem) { return 5 * elements(problem); }
double backward_flops(const Problem& problem) { return 11 * elements(problem); }

void validate(const Problem& problem) {
  if (problem.rows < 1 || problem.dim < 1) {
    throw Error(ErrorKind::usage, fmt::format("swiglu needs rows ≥ 1 and dim ≥ 1, found {}", to_string(problem)));
  }
}

void validate(const Problem& problem, const ForwardArgs& args) {
  validate(problem);
  const Shape matrix{problem.rows, problem.dim};
  ops::expect_tensor("gate", args.gate, problem.dtype, matrix);
  ops::expect_tensor("up", args.up, problem.dtype, matrix);
  ops::expect_tensor("out", args.out, problem.dtype, matrix);
}

void validate(const Problem& problem, const BackwardArgs& args) {
  validate(problem);
  const Shape matrix{problem.rows, problem.dim};
  ops::expect_tensor("gate", args.gate, problem.dtype, matrix);
  ops::expect_tensor("up", args.up, problem.dtype, matrix);
  ops::expect_tensor("dout", args.dout, problem.dtype, matrix);
  ops::expect_tensor("dgate", args.dgate, problem.dtype, matrix);
  ops::expect_tensor("dup", args.dup, problem.dtype, matrix);
  if (args.out.data != nullptr) ops::expect_tensor("out", args.out, problem.dtype, matrix);
}

}  // namespace syslab::swiglu
