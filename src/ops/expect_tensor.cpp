#include "ops/expect_tensor.hpp"

#include <fmt/format.h>

namespace syslab::ops {

void expect_tensor(std::string_view name, const ConstTensorView& view, const Shape& shape) {
  if (view.shape != shape) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has shape {}, must have {}", name, to_string(view.shape), to_string(shape)));
  }
  const int last = shape.rank() - 1;
  if (shape[last] > 1 && view.stride(last) != 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has last stride {}, must have 1: pass a contiguous copy", name, view.stride(last)));
  }
  if (view.data == nullptr) throw Error(ErrorKind::usage, fmt::format("{} has no memory", name));
}

void expect_tensor(std::string_view name, const ConstTensorView& view, DType dtype, const Shape& shape) {
  if (view.shape == shape && view.dtype != dtype) {
    throw Error(ErrorKind::usage, fmt::format("{} is {}, must be {}", name, to_string(view.dtype), to_string(dtype)));
  }
  expect_tensor(name, view, shape);
}

}  // namespace syslab::ops
