#include "ops/elementwise/elementwise.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/split_float.hpp"
#include "core/text/named.hpp"
#include "ops/elementwise/rungs.hpp"
#include "ops/expect_tensor.hpp"

namespace syslab::elementwise {

std::string to_string(const Problem& problem) { return fmt::format("rows={} dim={}", problem.rows, problem.dim); }

void validate(const Problem& problem) {
  if (problem.rows < 1 || problem.dim < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("an element-wise operator needs rows ≥ 1 and dim ≥ 1, found {}", to_string(problem)));
  }
}

namespace {

void expect_matrix(std::string_view name, const Problem& problem, const ConstTensorView& view) {
  ops::expect_tensor(name, view, {problem.rows, problem.dim});
}

}  // namespace

void validate(const Problem& problem, const CastArgs& args) {
  validate(problem);
  expect_matrix("x", problem, args.x);
  expect_matrix("y", problem, args.y);
}

void validate(const Problem& problem, const AddArgs& args) {
  validate(problem);
  expect_matrix("a", problem, args.a);
  expect_matrix("b", problem, args.b);
  expect_matrix("y", problem, args.y);
  const DType sum = promoted(args.a.dtype, args.b.dtype);
  if (args.y.dtype != sum && args.y.dtype != DType::f32) {
    throw Error(ErrorKind::usage, fmt::format("a sum of {} and {} is {}{}, not {}", syslab::to_string(args.a.dtype),
                                              syslab::to_string(args.b.dtype), syslab::to_string(sum),
                                              sum == DType::f32 ? "" : " or fp32", syslab::to_string(args.y.dtype)));
  }
}

void validate(const Problem& problem, const FillArgs& args) {
  validate(problem);
  expect_matrix("y", problem, args.y);
}

void validate(const Problem& problem, const SplitArgs& args) {
  validate(problem);
  const Shape shape{problem.rows, problem.dim};
  ops::expect_tensor("x", args.x, DType::f32, shape);
  ops::expect_tensor("high", args.high, DType::bf16, shape);
  ops::expect_tensor("low", args.low, kLowHalf, shape);
}

void validate(const Problem& problem, const JoinArgs& args) {
  validate(problem);
  const Shape halves{args.high.elements()};
  ops::expect_tensor("high", args.high, DType::bf16, halves);
  ops::expect_tensor("low", args.low, kLowHalf, halves);
  ops::expect_tensor("y", args.y, DType::f32, {problem.rows, problem.dim});
  if (args.offsets == nullptr) throw Error(ErrorKind::usage, "the offsets of the rows to join have no memory");
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of elementwise", name); }

}  // namespace syslab::elementwise
