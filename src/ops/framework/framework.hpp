// The operations of a deep-learning framework, a kernel each, as PyTorch runs them eagerly: for `eager_cuda` rungs,
// which spell an operator out in them and show what fusing is worth.
//
// An operation reads its operands from memory in their dtypes, computes in fp32 and rounds its result once, to the
// dtype of its output. What two dtypes become together (fp32, where one is half precision and one is not) is the
// caller's to know: it chooses the output. An operand may be of smaller extent in any dimension by a stride of 0
// (`broadcast`). An output may be an operand's memory where both have the same strides. No operation waits or
// allocates.
//
// Every operation is one launch, and is counted:
//
//   const framework::Launches before = framework::launches();
//   framework::combine(Binary::multiply, a, b, y, stream);
//   framework::launches() - before;                              // {.all = 1, .extra = 0}
//
// On the CPU the same operations are plain loops: lists of operations are proved there.
#pragma once

#include <cstdint>

#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::framework {

// --- what is counted -------------------------------------------------------------------------------------------------

struct Launches {
  std::int64_t all = 0;
  // Of these, what a framework does not do at this point: a forward pass's result that it has kept and an interface of
  // ours does not hand on, or a result that only ours asks for.
  std::int64_t extra = 0;

  Launches operator-(const Launches& before) const { return {all - before.all, extra - before.extra}; }
  std::int64_t of_framework() const { return all - extra; }
  bool operator==(const Launches&) const = default;
};
Launches launches();  // by this thread, ever

// While it lives, this thread's launches count as extra.
class Extra {
 public:
  Extra();
  Extra(const Extra&) = delete;
  Extra& operator=(const Extra&) = delete;
  ~Extra();
};

// --- element by element ----------------------------------------------------------------------------------------------

enum class Unary { copy, negate, exponential, logarithm, root, reciprocal_root, sigmoid };
enum class WithNumber { add, multiply, divide, power };
enum class Binary {
  add,
  subtract,
  multiply,
  divide,
  sigmoid_gradient  // a · b · (1 − b): of what arrives and the sigmoid
};

// Device memory that tells the kernel to do nothing.
struct Unless {
  const std::int32_t* not_zero = nullptr;
  const std::int64_t* any = nullptr;  // the same of a count
  const float* number = nullptr;      // equal to `equals`, with which the operation would be the identity
  float equals = 0;
};

// All of one shape, up to four dimensions, any strides. With Unary::copy, a cast.
void apply(Unary operation, const ConstTensorView& x, const TensorView& y, device::Stream stream,
           const Unless& unless = {});
void apply(WithNumber operation, const ConstTensorView& x, float number, const TensorView& y, device::Stream stream,
           const Unless& unless = {});
void combine(Binary operation, const ConstTensorView& a, const ConstTensorView& b, const TensorView& y,
             device::Stream stream, const Unless& unless = {});
void fill(float value, const TensorView& y, device::Stream stream);
// Both copied at once: a concatenation of two tensors, whose two parts of the result are given.
void join(const ConstTensorView& a, const ConstTensorView& b, const TensorView& y_of_a, const TensorView& y_of_b,
          device::Stream stream);

// --- rows ------------------------------------------------------------------------------------------------------------

// Over a row (rows, dim) → (rows). Sums in fp32, in an order that depends on `dim` alone.
void sum_rows(const ConstTensorView& x, const TensorView& y, device::Stream stream);
void mean_rows(const ConstTensorView& x, const TensorView& y, device::Stream stream);
// The first of the largest, and where it is; a NaN is larger than all.
void largest_of_rows(const ConstTensorView& x, const TensorView& y, std::int64_t* where, device::Stream stream);
// Down a column (rows, dim) → (dim), in an order that depends on `rows` alone.
void sum_columns(const ConstTensorView& x, const TensorView& y, device::Stream stream);

// y_i = x_i,index(i); NaN where the index names no column.
void gather(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream);
// y_i,index(i) = x_i, the rest as it is; a NaN in column 0 where the index names no column.
void scatter(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream);

// --- views -----------------------------------------------------------------------------------------------------------

// (rows) or (1) as (rows, dim), every column the same.
ConstTensorView across_columns(const ConstTensorView& vector, std::int64_t rows, std::int64_t dim);
// (dim) as (rows, dim), every row the same.
ConstTensorView across_rows(const ConstTensorView& vector, std::int64_t rows, std::int64_t dim);
// A number of fp32 in device memory, as a vector of which all elements are that number.
ConstTensorView number_at(const float* number, std::int64_t elements);

}  // namespace syslab::framework
