#include <fmt/format.h>

#include <cmath>

#include "ops/rope/rope.hpp"

namespace syslab::rope {

std::string_view to_string(Layout layout) { return layout == Layout::interleaved ? "interleaved" : "halves"; }

std::string to_string(const Problem& problem) {
  return fmt::format("batch={} heads={} seq={} head_dim={} layout={} x={} y={}", problem.batch, problem.heads,
                     problem.seq, problem.head_dim, to_string(problem.layout), syslab::to_string(problem.x_dtype),
                     syslab::to_string(problem.y_dtype));
}

namespace {

double elements(const Problem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.heads) * static_cast<double>(p.seq) *
         static_cast<double>(p.head_dim);
}

void expect_table(std::string_view name, const ConstTensorView& table, DType dtype, std::int64_t least_rows,
                  std::int64_t columns) {
  const bool rows_suffice = table.shape.rank() == 2 && table.size(0) >= least_rows;
  ops::expect_tensor(name, table, dtype, {rows_suffice ? table.size(0) : least_rows, columns});
  if (table.size(0) > 1 && table.stride(0) != columns) {
    throw Error(ErrorKind::usage, fmt::format("{} has row stride {}, must have {}: pass a contiguous copy", name,
                                              table.stride(0), columns));
  }
}

void require_even(std::int64_t head_dim) {
  if (head_dim < 2 || head_dim % 2 != 0) {
    throw Error(ErrorKind::usage, fmt::format("rope turns pairs: head_dim must be even, found {}", head_dim));
  }
}

template <typename T>
void fill(std::int64_t context, std::int64_t pairs, double theta, T* cos, T* sin) {
  for (std::int64_t k = 0; k < pairs; ++k) {
    const double frequency = std::pow(theta, -static_cast<double>(k) / static_cast<double>(pairs));
    for (std::int64_t position = 0; position < context; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      cos[position * pairs + k] = static_cast<T>(std::cos(angle));
      sin[position * pairs + k] = static_cast<T>(std::sin(angle));
    }
  }
}

}  // namespace

double bytes(const Problem& problem) {
  const double both = static_cast<double>(size_of(problem.x_dtype) + size_of(problem.y_dtype));
  const double tables = static_cast<double>(problem.seq) * static_cast<double>(problem.head_dim) *
                        static_cast<double>(size_of(problem.tables()));
  return elements(problem) * both + tables;
}

double flops(const Problem& problem) { return 3 * elements(problem); }

void fill_tables(std::int64_t context, std::int64_t head_dim, double theta, const TensorView& cos,
                 const TensorView& sin) {
  require_even(head_dim);
  if (!(theta > 0) || std::isinf(theta)) {
    throw Error(ErrorKind::usage, fmt::format("rope needs a positive theta, found {}", theta));
  }
  const DType dtype = ops::statistics_dtype(cos.dtype);
  const std::int64_t pairs = head_dim / 2;
  for (const auto& [name, table] : {std::pair{"cos", &cos}, std::pair{"sin", &sin}}) {
    expect_table(name, *table, dtype, context, pairs);
    if (table->size(0) != context) {
      throw Error(ErrorKind::usage,
                  fmt::format("{} has {} rows, must have one a position: {}", name, table->size(0), context));
    }
  }
  if (dtype == DType::f64) {
    fill(context, pairs, theta, cos.as<double>(), sin.as<double>());
  } else {
    fill(context, pairs, theta, cos.as<float>(), sin.as<float>());
  }
}

void validate(const Problem& problem) {
  if (problem.batch < 1 || problem.heads < 1 || problem.seq < 1) {
    throw Error(ErrorKind::usage, fmt::format("rope needs batch, heads and seq ≥ 1, found {}", to_string(problem)));
  }
  require_even(problem.head_dim);
  if (problem.x_dtype != problem.y_dtype && (problem.y_dtype != DType::f32 || problem.x_dtype == DType::f64)) {
    throw Error(ErrorKind::usage, fmt::format("rope takes y in x's dtype, or in fp32 of a half-precision x; found {}",
                                              to_string(problem)));
  }
}

void validate(const Problem& problem, const Args& args, Pass pass) {
  validate(problem);
  const bool forward = pass == Pass::forward;
  const Shape shape{problem.batch, problem.heads, problem.seq, problem.head_dim};
  ops::expect_tensor("x", args.x, forward ? problem.x_dtype : problem.y_dtype, shape);
  ops::expect_tensor("y", args.y, forward ? problem.y_dtype : problem.x_dtype, shape);
  expect_table("cos", args.cos, problem.tables(), problem.seq, problem.head_dim / 2);
  expect_table("sin", args.sin, problem.tables(), problem.seq, problem.head_dim / 2);
}

}  // namespace syslab::rope
