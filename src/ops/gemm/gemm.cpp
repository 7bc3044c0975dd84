#include "ops/gemm/gemm.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/text.hpp"
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

namespace {

void expect_matrix(std::string_view name, const ConstTensorView& view, DType dtype, const Shape& shape) {
  if (view.shape != shape || view.dtype != dtype) {
    throw Error(ErrorKind::usage, fmt::format("{} is {} of {}, must be {} of {}", name, to_string(view.shape),
                                              to_string(view.dtype), to_string(shape), to_string(dtype)));
  }
  if (shape[1] > 1 && view.stride(1) != 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has last stride {}, must have 1: pass a contiguous copy", name, view.stride(1)));
  }
  if (view.data == nullptr) throw Error(ErrorKind::usage, fmt::format("{} has no memory", name));
}

}  // namespace

void validate(const Problem& problem, const Args& args) {
  validate(problem);
  expect_matrix("a", args.a, problem.dtype, {problem.m, problem.k});
  expect_matrix("b", args.b, problem.dtype, {problem.k, problem.n});
  expect_matrix("c", args.c, problem.dtype, {problem.m, problem.n});
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(),       tiled_rung(),
                                          openblas_rung(),  cublas_tf32_rung(), cublas_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) {
  std::vector<std::string> names;
  for (const Rung& rung : ladder()) {
    if (rung.name == name) return rung;
    names.push_back(rung.name);
  }
  throw Error(ErrorKind::usage, unknown_name("implementation of gemm", name, names));
}

}  // namespace syslab::gemm
