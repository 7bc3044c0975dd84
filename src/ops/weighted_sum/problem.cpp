#include <fmt/format.h>

#include "ops/expect_tensor.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

using ops::expect_tensor;

std::string to_string(const Problem& problem) {
  return fmt::format("rows={} dim={} dtype={}", problem.rows, problem.dim, to_string(problem.dtype));
}

double forward_flops(const Problem& problem) {
  return 2.0 * static_cast<double>(problem.rows) * static_cast<double>(problem.dim);
}

double backward_flops(const Problem& problem) {
  return 3.0 * static_cast<double>(problem.rows) * static_cast<double>(problem.dim);
}

double forward_bytes(const Problem& problem) {
  const auto rows = static_cast<double>(problem.rows), dim = static_cast<double>(problem.dim);
  return static_cast<double>(size_of(problem.dtype)) * (rows * dim + dim + rows);
}

double backward_bytes(const Problem& problem) {
  const auto rows = static_cast<double>(problem.rows), dim = static_cast<double>(problem.dim);
  return static_cast<double>(size_of(problem.dtype)) * (2 * rows * dim + 2 * dim + rows);
}

void validate(const Problem& problem) {
  if (problem.rows < 1 || problem.dim < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("a weighted sum needs rows ≥ 1 and dim ≥ 1, found {}", to_string(problem)));
  }
}

void validate(const Problem& problem, const ForwardArgs& args) {
  validate(problem);
  expect_tensor("x", args.x, problem.dtype, {problem.rows, problem.dim});
  expect_tensor("w", args.w, problem.dtype, {problem.dim});
  expect_tensor("y", args.y, problem.dtype, {problem.rows});
}

void validate(const Problem& problem, const BackwardArgs& args) {
  validate(problem);
  expect_tensor("x", args.x, problem.dtype, {problem.rows, problem.dim});
  expect_tensor("w", args.w, problem.dtype, {problem.dim});
  expect_tensor("dy", args.dy, problem.dtype, {problem.rows});
  expect_tensor("dx", args.dx, problem.dtype, {problem.rows, problem.dim});
  expect_tensor("dw", args.dw, problem.dtype, {problem.dim});
}

}  // namespace syslab::weighted_sum
