#include "ops/host_rows.hpp"

namespace syslab::ops {
namespace {

template <typename T>
const float* widened(const T* from, std::int64_t count, Stretch& scratch) {
  for (std::int64_t i = 0; i < count; ++i) scratch[static_cast<std::size_t>(i)] = to_float(from[i]);
  return scratch.data();
}

template <typename T>
void narrowed(const float* values, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<T>(values[i]);
}

[[noreturn]] void refuse_doubles() {
  throw Error(ErrorKind::internal, "a matrix of fp64 reached a rung that computes in fp32");
}

}  // namespace

const float* read_floats(const ConstTensorView& matrix, std::int64_t row, std::int64_t from, std::int64_t count,
                         Stretch& scratch) {
  const std::int64_t at = row * matrix.stride(0) + from;
  switch (matrix.dtype) {
    case DType::f32:
      return matrix.as<float>() + at;
    case DType::f16:
      return widened(matrix.as<f16>() + at, count, scratch);
    case DType::bf16:
      return widened(matrix.as<bf16>() + at, count, scratch);
    case DType::f64:
      break;
  }
  refuse_doubles();
}

void write_floats(const TensorView& matrix, std::int64_t row, std::int64_t from, std::int64_t count,
                  const float* values) {
  const std::int64_t at = row * matrix.stride(0) + from;
  switch (matrix.dtype) {
    case DType::f32:
      std::copy_n(values, count, matrix.as<float>() + at);
      return;
    case DType::f16:
      return narrowed(values, count, matrix.as<f16>() + at);
    case DType::bf16:
      return narrowed(values, count, matrix.as<bf16>() + at);
    case DType::f64:
      break;
  }
  refuse_doubles();
}

}  // namespace syslab::ops
