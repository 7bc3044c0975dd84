#include "ops/gemm/gemm.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/text/named.hpp"
#include "ops/expect_tensor.hpp"
#include "ops/gemm/rungs.hpp"

namespace syslab::gemm {

std::string to_string(const Problem& problem) {
  return fmt::format("m={} n={} k={} dtype={}", problem.m, problem.n, problem.k, syslab::to_string(problem.dtype));
}

double flops(const Problem& problem) {
  return 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
}

double bytes(const Problem& problem) {
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n), k = static_cast<double>(problem.k);
  return static_cast<double>(size_of(problem.dtype)) * (m * k + k * n + m * n);
}

void validate(const Problem& problem) {
  if (problem.m < 1 || problem.n < 1 || problem.k < 1) {
    throw Error(ErrorKind::usage, fmt::format("a matrix product needs m, n and k ≥ 1, found {}", to_string(problem)));
  }
}

void validate(const Problem& problem, const Args& args) {
  validate(problem);
  ops::expect_tensor("a", args.a, problem.dtype, {problem.m, problem.k});
  ops::expect_tensor("b", args.b, problem.dtype, {problem.k, problem.n});
  ops::expect_tensor("c", args.c, problem.dtype, {problem.m, problem.n});
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(),       tiled_rung(),
                                          openblas_rung(),  cublas_tf32_rung(), cublas_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of gemm", name); }

}  // namespace syslab::gemm
