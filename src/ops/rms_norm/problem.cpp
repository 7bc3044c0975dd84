#include <fmt/format.h>

#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

std::string to_string(const Problem& problem) {
  return fmt::format("rows={} dim={} x={} w={} y={}{}", problem.rows, problem.dim, to_string(problem.x_dtype),
                     to_string(problem.w_dtype), to_string(problem.y_dtype), problem.add ? " add" : "");
}

namespace {

struct Sizes {
  double matrix, rows, dim, x, y, w, statistic;

  explicit Sizes(const Problem& p)
      : matrix(static_cast<double>(p.rows) * static_cast<double>(p.dim)),
        rows(static_cast<double>(p.rows)),
        dim(static_cast<double>(p.dim)),
        x(static_cast<double>(size_of(p.x_dtype))),
        y(static_cast<double>(size_of(p.y_dtype))),
        w(static_cast<double>(size_of(p.w_dtype))),
        statistic(static_cast<double>(size_of(p.statistics()))) {}
};

}  // namespace

double forward_bytes(const Problem& problem) {
  const Sizes s(problem);
  const double added = problem.add ? s.y + s.x : 0;  // delta read, h written
  return s.matrix * (s.x + s.y + added) + s.dim * s.w + s.rows * s.statistic;
}

double backward_bytes(const Problem& problem, bool with_dh) {
  const Sizes s(problem);
  return s.matrix * (s.y + 2 * s.x + (with_dh ? s.x : 0)) + s.dim * (s.w + s.statistic) + s.rows * s.statistic;
}

double forward_flops(const Problem& problem) {
  const Sizes s(problem);
  return s.matrix * (problem.add ? 5 : 4) + 3 * s.rows;
}

double backward_flops(const Problem& problem, bool with_dh) {
  const Sizes s(problem);
  // g, h·rstd; a product and a sum of c; a product, a difference and a product of dx; a product and a sum of dw.
  return s.matrix * (with_dh ? 10 : 9) + s.rows;
}

void validate(const Problem& problem) {
  if (problem.rows < 1 || problem.dim < 1) {
    throw Error(ErrorKind::usage, fmt::format("rms_norm needs rows ≥ 1 and dim ≥ 1, found {}", to_string(problem)));
  }
  if (!(problem.eps >= 0)) {
    throw Error(ErrorKind::usage, fmt::format("rms_norm needs eps ≥ 0, found {}", problem.eps));
  }
  const bool doubles = problem.x_dtype == DType::f64;
  if (problem.w_dtype != problem.statistics() || (problem.y_dtype == DType::f64) != doubles) {
    throw Error(ErrorKind::usage, fmt::format("rms_norm takes w in fp32, and fp64 only for all of x, w and y; found {}",
                                              to_string(problem)));
  }
}

void validate(const Problem& problem, const ForwardArgs& args) {
  validate(problem);
  const Shape matrix{problem.rows, problem.dim};
  ops::expect_tensor("x", args.x, problem.x_dtype, matrix);
  ops::expect_tensor("w", args.w, problem.w_dtype, {problem.dim});
  ops::expect_tensor("y", args.y, problem.y_dtype, matrix);
  ops::expect_tensor("rstd", args.rstd, problem.statistics(), {problem.rows});
  if (problem.add) {
    ops::expect_tensor("delta", args.delta, matrix);
    ops::expect_tensor("h", args.h, problem.x_dtype, matrix);
  } else if (args.delta.data != nullptr || args.h.data != nullptr) {
    throw Error(ErrorKind::usage, "delta or h was given to an rms_norm without add: set Problem::add");
  }
}

void validate(const Problem& problem, const BackwardArgs& args) {
  validate(problem);
  const Shape matrix{problem.rows, problem.dim};
  ops::expect_tensor("dy", args.dy, problem.y_dtype, matrix);
  ops::expect_tensor("h", args.h, problem.x_dtype, matrix);
  ops::expect_tensor("w", args.w, problem.w_dtype, {problem.dim});
  ops::expect_tensor("rstd", args.rstd, problem.statistics(), {problem.rows});
  ops::expect_tensor("dx", args.dx, problem.x_dtype, matrix);
  ops::expect_tensor("dw", args.dw, problem.statistics(), {problem.dim});
  if (args.dh.data != nullptr) ops::expect_tensor("dh", args.dh, problem.x_dtype, matrix);
}

}  // namespace syslab::rms_norm
