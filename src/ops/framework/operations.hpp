// The operations for one element, and the parameters passed to kernels; private to this folder.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"
#include "core/host_device.hpp"
#include "core/tensor.hpp"
#include "device/device.hpp"
#include "ops/framework/framework.hpp"

namespace syslab::framework {

enum class Operation {
  fill,
  copy,
  negate,
  exponential,
  logarithm,
  root,
  reciprocal_root,
  sigmoid,
  add_number,
  multiply_number,
  divide_by_number,
  power,
  add,
  subtract,
  multiply,
  divide,
  sigmoid_gradient
};

constexpr int operands_of(Operation operation) {
  return operation == Operation::fill ? 0 : operation < Operation::add ? 1 : 2;
}

SYSLAB_HOST_DEVICE inline float reciprocal_root_of(float x) {
#ifdef __CUDA_ARCH__
  return rsqrtf(x);
#else
  return 1 / sqrtf(x);
#endif
}

template <Operation kOperation>
SYSLAB_HOST_DEVICE float result_of(float a, float b, float number) {
  switch (kOperation) {
    case Operation::fill:
      return number;
    case Operation::copy:
      return a;
    case Operation::negate:
      return -a;
    case Operation::exponential:
      return expf(a);
    case Operation::logarithm:
      return logf(a);
    case Operation::root:
      return sqrtf(a);
    case Operation::reciprocal_root:
      return reciprocal_root_of(a);
    case Operation::sigmoid:
      return 1 / (1 + expf(-a));
    case Operation::add_number:
      return a + number;
    case Operation::multiply_number:
      return a * number;
    case Operation::divide_by_number:
      return a / number;
    case Operation::power:
      return number == 1 ? a : number == 2 ? a * a : number == 3 ? a * a * a : powf(a, number);
    case Operation::add:
      return a + b;
    case Operation::subtract:
      return a - b;
    case Operation::multiply:
      return a * b;
    case Operation::divide:
      return a / b;
    case Operation::sigmoid_gradient:
      return a * (1 - b) * b;
  }
  return 0;
}

// Calls body.template operator()<Operation>().
template <typename Body>
void with_operation(Operation operation, const Body& body) {
  const auto try_from = [&]<int kIndex>(const auto& self, std::integral_constant<int, kIndex>) -> void {
    if (static_cast<int>(operation) == kIndex) {
      body.template operator()<static_cast<Operation>(kIndex)>();
    } else if constexpr (kIndex < static_cast<int>(Operation::sigmoid_gradient)) {
      self(self, std::integral_constant<int, kIndex + 1>{});
    }
  };
  try_from(try_from, std::integral_constant<int, 0>{});
}

// A tensor inside a kernel: strides of the collapsed dimensions, innermost last. `Pointer` is void* or const void*.
template <typename Pointer>
struct BasicOperand {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  Strides strides{};
};
using Operand = BasicOperand<const void*>;
using Result = BasicOperand<void*>;

// One operation over all elements. Dimensions contiguous in all operands are collapsed; at least one remains. `width`
// neighbours are read and written as one vector if strides and addresses allow it.
struct ElementWise {
  Operation operation = Operation::copy;
  int rank = 1;
  std::array<std::int64_t, kMaxRank> sizes{};
  Operand a, b;
  Result y;
  float number = 0;
  Unless unless;
  int width = 1;  // or 4
  std::int64_t elements = 0;
};

enum class RowOperation { sum, mean, largest };

// Entry points of cuda_kernels.cu, one launch each.
void launch(const ElementWise& work, device::Stream stream);
void launch_join(const ElementWise& a, const ElementWise& b, device::Stream stream);
void launch_rows(RowOperation operation, const ConstTensorView& x, const TensorView& y, std::int64_t* where,
                 device::Stream stream);
void launch_columns(const ConstTensorView& x, const TensorView& y, device::Stream stream);
void launch_gather(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream);
void launch_scatter(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream);

}  // namespace syslab::framework
