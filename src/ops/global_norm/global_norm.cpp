#include "ops/global_norm/global_norm.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/text/named.hpp"
#include "ops/global_norm/rungs.hpp"

namespace syslab::global_norm {

std::string to_string(const Problem& problem) {
  return fmt::format("elements={} dtype={}", problem.elements, syslab::to_string(problem.dtype));
}

double norm_bytes(const Problem& problem) {
  return static_cast<double>(problem.elements) * static_cast<double>(size_of(problem.dtype));
}

void validate(const Problem& problem) {
  if (problem.elements < 1) {
    throw Error(ErrorKind::usage, fmt::format("a global norm needs elements ≥ 1, found {}", to_string(problem)));
  }
}

void validate(const Problem& problem, const NormArgs& args) {
  validate(problem);
  ops::expect_tensor("g", args.g, problem.dtype, {problem.elements});
  ops::expect_tensor("norm", args.norm, problem.statistics(), {1});
  ops::expect_tensor("factor", args.factor, problem.statistics(), {1});
  if (args.grad_scale.data != nullptr) ops::expect_tensor("grad_scale", args.grad_scale, problem.statistics(), {1});
  if (!(args.max_norm > 0)) {
    throw Error(ErrorKind::usage,
                fmt::format("max_norm is {}, must be above 0 (infinity: no clipping)", args.max_norm));
  }
}

void validate(const Problem& problem, const ScaleArgs& args) {
  validate(problem);
  ops::expect_tensor("g", args.g, problem.dtype, {problem.elements});
  ops::expect_tensor("factor", args.factor, problem.statistics(), {1});
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of global_norm", name); }

}  // namespace syslab::global_norm
