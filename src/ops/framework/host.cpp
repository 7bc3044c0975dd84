#include "ops/framework/host.hpp"

#include <limits>

#include "core/error.hpp"

namespace syslab::framework::host {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float read(const void* data, DType dtype, std::int64_t at) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(data)[at];
    case DType::f16:
      return to_float(static_cast<const f16*>(data)[at]);
    case DType::bf16:
      return to_float(static_cast<const bf16*>(data)[at]);
    case DType::f64:
      break;
  }
  throw Error(ErrorKind::internal, "the framework's operations compute in fp32, not in fp64");
}

void write(void* data, DType dtype, std::int64_t at, float value) {
  switch (dtype) {
    case DType::f32:
      static_cast<float*>(data)[at] = value;
      return;
    case DType::f16:
      static_cast<f16*>(data)[at] = to_f16(value);
      return;
    case DType::bf16:
      static_cast<bf16*>(data)[at] = to_bf16(value);
      return;
    case DType::f64:
      break;
  }
  throw Error(ErrorKind::internal, "the framework's operations compute in fp32, not in fp64");
}

template <typename Pointer>
std::int64_t offset(const BasicOperand<Pointer>& operand, const std::array<std::int64_t, kMaxRank>& index) {
  std::int64_t at = 0;
  for (std::size_t dim = 0; dim < kMaxRank; ++dim) at += index[dim] * operand.strides[dim];
  return at;
}

bool idle(const Unless& unless) {
  return (unless.not_zero != nullptr && *unless.not_zero != 0) || (unless.any != nullptr && *unless.any != 0) ||
         (unless.number != nullptr && *unless.number == unless.equals);
}

float at(const ConstTensorView& x, std::int64_t row, std::int64_t column) {
  return read(x.data, x.dtype, row * x.stride(0) + column * x.stride(1));
}

}  // namespace

void run(const ElementWise& work) {
  if (idle(work.unless)) return;
  with_operation(work.operation, [&]<Operation kOperation>() {
    for (std::int64_t i = 0; i < work.elements; ++i) {
      std::array<std::int64_t, kMaxRank> index{};
      std::int64_t rest = i;
      for (int dim = work.rank - 1; dim >= 0; --dim) {
        const auto d = static_cast<std::size_t>(dim);
        index[d] = rest % work.sizes[d];
        rest /= work.sizes[d];
      }
      const float a = work.a.data == nullptr ? 0 : read(work.a.data, work.a.dtype, offset(work.a, index));
      const float b = work.b.data == nullptr ? 0 : read(work.b.data, work.b.dtype, offset(work.b, index));
      write(work.y.data, work.y.dtype, offset(work.y, index), result_of<kOperation>(a, b, work.number));
    }
  });
}

void rows(RowOperation operation, const ConstTensorView& x, const TensorView& y, std::int64_t* where) {
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    float found = at(x, row, 0);
    std::int64_t place = 0;
    for (std::int64_t column = 1; column < x.size(1); ++column) {
      const float value = at(x, row, column);
      if (operation != RowOperation::largest) {
        found += value;
      } else if (value > found || (value != value && found == found)) {
        found = value;
        place = column;
      }
    }
    if (operation == RowOperation::mean) found /= static_cast<float>(x.size(1));
    write(y.data, y.dtype, row * y.stride(0), found);
    if (where != nullptr) where[row] = place;
  }
}

void columns(const ConstTensorView& x, const TensorView& y) {
  for (std::int64_t column = 0; column < x.size(1); ++column) {
    float sum = 0;
    for (std::int64_t row = 0; row < x.size(0); ++row) sum += at(x, row, column);
    write(y.data, y.dtype, column * y.stride(0), sum);
  }
}

void gather(const ConstTensorView& x, const std::int64_t* index, const TensorView& y) {
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    const bool inside = index[row] >= 0 && index[row] < x.size(1);
    write(y.data, y.dtype, row * y.stride(0), inside ? at(x, row, index[row]) : kNan);
  }
}

void scatter(const ConstTensorView& x, const std::int64_t* index, const TensorView& y) {
  for (std::int64_t row = 0; row < y.size(0); ++row) {
    const bool inside = index[row] >= 0 && index[row] < y.size(1);
    const std::int64_t column = inside ? index[row] : 0;
    write(y.data, y.dtype, row * y.stride(0) + column * y.stride(1),
          inside ? read(x.data, x.dtype, row * x.stride(0)) : kNan);
  }
}

}  // namespace syslab::framework::host
