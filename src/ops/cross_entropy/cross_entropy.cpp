#include "ops/cross_entropy/cross_entropy.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/text/named.hpp"
#include "ops/cross_entropy/rungs.hpp"

namespace syslab::cross_entropy {

std::string to_string(const Problem& problem) {
  return fmt::format("rows={} classes={} dtype={}", problem.rows, problem.classes, syslab::to_string(problem.dtype));
}

double bytes(const Problem& problem, Pass pass) {
  const auto rows = static_cast<double>(problem.rows);
  const double logits = rows * static_cast<double>(problem.classes) * static_cast<double>(size_of(problem.dtype));
  const double targets = rows * sizeof(std::int64_t),
               column = rows * static_cast<double>(size_of(problem.statistics()));
  if (pass == Pass::forward) return logits + targets + 2 * column;
  return 2 * logits + targets + (pass == Pass::backward ? column : 2 * column);
}

// Forward: a difference, an exponential and a sum an element (the comparison for the largest is none); backward: a
// difference, an exponential and a product.
double flops(const Problem& problem, Pass pass) {
  const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.classes);
  return (pass == Pass::both ? 6 : 3) * elements;
}

void validate(const Problem& problem) {
  if (problem.rows < 1 || problem.classes < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("a cross-entropy needs rows ≥ 1 and classes ≥ 1, found {}", to_string(problem)));
  }
}

namespace {

void expect_targets(const std::int64_t* targets) {
  if (targets == nullptr) throw Error(ErrorKind::usage, "targets has no memory");
}

void expect_scale(const Problem& problem, const ConstTensorView& scale) {
  if (scale.data != nullptr) ops::expect_tensor("scale", scale, problem.statistics(), {1});
}

// A result that overwrites the logits must have their layout.
void expect_gradient(const Problem& problem, const ConstTensorView& logits, const TensorView& dlogits) {
  ops::expect_tensor("dlogits", dlogits, problem.dtype, {problem.rows, problem.classes});
  if (dlogits.data == logits.data && problem.rows > 1 && dlogits.stride(0) != logits.stride(0)) {
    throw Error(ErrorKind::usage,
                fmt::format("dlogits lies where the logits do with rows {} apart, must be {} as theirs",
                            dlogits.stride(0), logits.stride(0)));
  }
}

template <typename Args>
void expect_losses(const Problem& problem, const Args& args) {
  ops::expect_tensor("row_loss", args.row_loss, problem.statistics(), {problem.rows});
  ops::expect_tensor("lse", args.lse, problem.statistics(), {problem.rows});
  ops::expect_tensor("loss", args.loss, problem.statistics(), {1});
}

void expect_logits(const Problem& problem, const ConstTensorView& logits) {
  ops::expect_tensor("logits", logits, problem.dtype, {problem.rows, problem.classes});
}

}  // namespace

void validate(const Problem& problem, const ForwardArgs& args) {
  validate(problem);
  expect_logits(problem, args.logits);
  expect_targets(args.targets);
  expect_losses(problem, args);
}

void validate(const Problem& problem, const BackwardArgs& args) {
  validate(problem);
  expect_logits(problem, args.logits);
  expect_targets(args.targets);
  ops::expect_tensor("lse", args.lse, problem.statistics(), {problem.rows});
  expect_scale(problem, args.scale);
  expect_gradient(problem, args.logits, args.dlogits);
}

void validate(const Problem& problem, const ForwardBackwardArgs& args) {
  validate(problem);
  expect_logits(problem, args.logits);
  expect_targets(args.targets);
  expect_losses(problem, args);
  expect_scale(problem, args.scale);
  expect_gradient(problem, args.logits, args.dlogits);
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), eager_cuda_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of cross_entropy", name); }

}  // namespace syslab::cross_entropy
