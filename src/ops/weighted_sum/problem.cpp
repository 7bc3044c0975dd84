#include <fmt/format.h>

#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

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

namespace {

template <typename View>
View flatten(const View& tensor) {
  const int rank = tensor.shape.rank();
  if (rank < 1) throw Error(ErrorKind::usage, "a weighted sum needs at least one dimension to sum over, found none");
  // From the innermost leading dimension outwards: each must step over exactly the rows inside it. Dimensions of one
  // step nowhere, so their stride says nothing.
  std::int64_t rows = 1, step = 0;
  for (int dim = rank - 2; dim >= 0; --dim) {
    if (tensor.size(dim) == 1) continue;
    if (rows == 1) {
      step = tensor.stride(dim);
    } else if (tensor.stride(dim) != step * rows) {
      throw Error(ErrorKind::usage,
                  fmt::format("x of shape {} cannot be seen as rows: dimension {} has stride {}, {} would continue the "
                              "rows before it; pass a contiguous copy",
                              to_string(tensor.shape), dim, tensor.stride(dim), step * rows));
    }
    rows *= tensor.size(dim);
  }
  const std::int64_t columns = tensor.size(rank - 1);
  return View(tensor.data, tensor.dtype, Shape{rows, columns},
              Strides{rows == 1 ? columns : step, tensor.stride(rank - 1)});
}

void expect_tensor(std::string_view name, const ConstTensorView& view, DType dtype, const Shape& shape) {
  if (view.shape != shape) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has shape {}, must have {}", name, to_string(view.shape), to_string(shape)));
  }
  if (view.dtype != dtype) {
    throw Error(ErrorKind::usage, fmt::format("{} is {}, must be {}", name, to_string(view.dtype), to_string(dtype)));
  }
  const int last = shape.rank() - 1;
  if (shape[last] > 1 && view.stride(last) != 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has last stride {}, must have 1: pass a contiguous copy", name, view.stride(last)));
  }
  if (view.data == nullptr) throw Error(ErrorKind::usage, fmt::format("{} has no memory", name));
}

}  // namespace

ConstTensorView flatten_rows(const ConstTensorView& tensor) { return flatten(tensor); }
TensorView flatten_rows(const TensorView& tensor) { return flatten(tensor); }

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
