// The operations of a deep-learning framework, one kernel each, as PyTorch runs them eagerly: for `eager_cuda` rungs,
// which compose operators from them and show what fusion gains.
//
// An operation reads its operands from memory in their dtypes, computes in fp32 and rounds its result once, to the
// dtype of its output. The caller chooses the output's dtype and so the promotion of two dtypes (fp32 for half
// precision with fp32). An operand may be broadcast along any dimension by a stride of 0 (`broadcast`). An output may
// use an operand's memory if both have the same strides. No operation waits or allocates.
//
// Every operation is one launch and is counted:
//
//   const framework::Launches before = framework::launches();
//   framework::combine(Binary::multiply, a, b, y, stream);
//   framework::launches() - before;                              // {.all = 1, .extra = 0}
//
// On the CPU the same operations are plain loops, so that compositions can be tested there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::framework {

// --- counting launches
// -------------------------------------------------------------------------------------------------

struct Launches {
  std::int64_t all = 0;
  // The share that a framework does not launch here: recomputing a forward result that it would have saved but our
  // interface does not pass on, or a result that only our interface needs.
  std::int64_t extra = 0;

  Launches operator-(const Launches& before) const { return {all - before.all, extra - before.extra}; }
  std::int64_t of_framework() const { return all - extra; }
  bool operator==(const Launches&) const = default;
};
Launches launches();  // by this thread, ever

// During its lifetime, this thread's launches count as extra.
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
  sigmoid_gradient  // a · b · (1 − b): of the incoming gradient and the sigmoid
};

// Device memory that can tell the kernel to do nothing.
struct Unless {
  const std::int32_t* not_zero = nullptr;
  const std::int64_t* any = nullptr;  // the same for a count
  const float* number = nullptr;      // skip if equal to `equals`, for which the operation is the identity
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
// Concatenates two tensors in one kernel; the two parts of the result are given.
void join(const ConstTensorView& a, const ConstTensorView& b, const TensorView& y_of_a, const TensorView& y_of_b,
          device::Stream stream);

// --- rows ------------------------------------------------------------------------------------------------------------

// Along rows: (rows, dim) → (rows). Sums in fp32, in an order that depends only on `dim`.
void sum_rows(const ConstTensorView& x, const TensorView& y, device::Stream stream);
void mean_rows(const ConstTensorView& x, const TensorView& y, device::Stream stream);
// The first largest element and its index; a NaN counts as largest.
void largest_of_rows(const ConstTensorView& x, const TensorView& y, std::int64_t* where, device::Stream stream);
// Along columns: (rows, dim) → (dim), in an order that depends only on `rows`.
void sum_columns(const ConstTensorView& x, const TensorView& y, device::Stream stream);

// y_i = x_i,index(i); NaN for an index out of range.
void gather(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream);
// y_i,index(i) = x_i, other elements unchanged; a NaN in column 0 for an index out of range.
void scatter(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream);

// --- views -----------------------------------------------------------------------------------------------------------

// Where the element that lies `elements` behind the first begins.
template <typename Pointer>
Pointer behind(const BasicTensorView<Pointer>& view, std::int64_t elements) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte, std::byte>;
  return static_cast<Byte*>(view.data) + elements * static_cast<std::int64_t>(size_of(view.dtype));
}
// (rows) or (1) as (rows, dim), every column the same.
ConstTensorView across_columns(const ConstTensorView& vector, std::int64_t rows, std::int64_t dim);
// (dim) as (rows, dim), every row the same.
ConstTensorView across_rows(const ConstTensorView& vector, std::int64_t rows, std::int64_t dim);
// An fp32 scalar in device memory, as a vector with all elements equal to it.
ConstTensorView number_at(const float* number, std::int64_t elements);

}  // namespace syslab::framework
