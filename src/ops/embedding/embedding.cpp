#include "ops/embedding/embedding.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "core/text/named.hpp"
#include "ops/embedding/rungs.hpp"

namespace syslab::embedding {

std::string to_string(const Problem& problem) {
  return fmt::format("rows={} vocab={} dim={} table={} x={}", problem.rows, problem.vocab, problem.dim,
                     syslab::to_string(problem.table_dtype), syslab::to_string(problem.x_dtype));
}

namespace {

double ids_bytes(const Problem& problem) { return static_cast<double>(problem.rows) * sizeof(std::int64_t); }

double matrix_bytes(std::int64_t rows, std::int64_t dim, DType dtype) {
  return static_cast<double>(rows) * static_cast<double>(dim) * static_cast<double>(size_of(dtype));
}

void expect_ids(const std::int64_t* ids) {
  if (ids == nullptr) throw Error(ErrorKind::usage, "ids has no memory");
}

}  // namespace

// Of ids drawn alike: as often as one comes again, its row may come from a cache.
double distinct_rows(const Problem& problem) {
  const auto vocab = static_cast<double>(problem.vocab);
  return -vocab * std::expm1(static_cast<double>(problem.rows) * std::log1p(-1 / vocab));
}

double forward_bytes(const Problem& problem) {
  return ids_bytes(problem) + distinct_rows(problem) * matrix_bytes(1, problem.dim, problem.table_dtype) +
         matrix_bytes(problem.rows, problem.dim, problem.x_dtype);
}

double backward_bytes(const Problem& problem, bool accumulate) {
  return ids_bytes(problem) + matrix_bytes(problem.rows, problem.dim, problem.x_dtype) +
         (accumulate ? 2 : 1) * matrix_bytes(problem.vocab, problem.dim, problem.gradient());
}

void validate(const Problem& problem) {
  if (problem.rows < 1 || problem.vocab < 1 || problem.dim < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("an embedding needs rows, vocab and dim ≥ 1, found {}", to_string(problem)));
  }
  const bool from_fp32 = problem.table_dtype == DType::f32 && size_of(problem.x_dtype) == 2;
  if (problem.x_dtype != problem.table_dtype && !from_fp32) {
    throw Error(ErrorKind::usage,
                fmt::format("an embedding from a table of {} gives {}, not {}", syslab::to_string(problem.table_dtype),
                            problem.table_dtype == DType::f32 ? "fp32, bf16 or fp16" : "the same",
                            syslab::to_string(problem.x_dtype)));
  }
}

void validate(const Problem& problem, const ForwardArgs& args) {
  validate(problem);
  expect_ids(args.ids);
  ops::expect_tensor("table", args.table, problem.table_dtype, {problem.vocab, problem.dim});
  ops::expect_tensor("x", args.x, problem.x_dtype, {problem.rows, problem.dim});
}

void validate(const Problem& problem, const BackwardArgs& args) {
  validate(problem);
  expect_ids(args.ids);
  ops::expect_tensor("dx", args.dx, problem.x_dtype, {problem.rows, problem.dim});
  ops::expect_tensor("dtable", args.dtable, problem.gradient(), {problem.vocab, problem.dim});
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of embedding", name); }

}  // namespace syslab::embedding
