// Element-wise operations: casts, sums of two tensors, constants, split floats.
//
//   cast    y = x                rounded once to y's dtype
//   add     y = a + b            in fp32 (fp64 if one of them is), rounded once
//   fill    y = value
//   split   (high, low) = x      the halves of a float (core/split_float.hpp)
//   join    y = (high, low)      the inverse of split
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::elementwise {

// One matrix (rows, dim); dtypes are those of the views.
struct Problem {
  std::int64_t rows = 1, dim = 1;

  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// The common dtype of two: the same if equal, fp64 if one is fp64, else fp32.
constexpr DType promoted(DType a, DType b) {
  return a == b ? a : a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
}

// Rows any stride apart, elements of a row adjacent; any dtypes unless said otherwise. y may overlap an input only if
// it has the same memory, strides and dtype.
struct CastArgs {
  ConstTensorView x;
  TensorView y;
};
struct AddArgs {
  ConstTensorView a, b;
  TensorView y;  // of promoted(a, b), or of fp32
};
struct FillArgs {
  double value = 0;
  TensorView y;
};
struct SplitArgs {
  ConstTensorView x;  // fp32
  TensorView high;    // bf16
  TensorView low;     // kLowHalf
};
// Row r of y is elements [offsets[r], offsets[r] + dim) of the halves, which are vectors.
struct JoinArgs {
  ConstTensorView high, low;              // (elements): bf16, kLowHalf
  const std::int64_t* offsets = nullptr;  // (rows), in the memory of the stream's device; in range (unchecked)
  TensorView y;                           // fp32
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const CastArgs& args);
void validate(const Problem& problem, const AddArgs& args);
void validate(const Problem& problem, const FillArgs& args);
void validate(const Problem& problem, const SplitArgs& args);
void validate(const Problem& problem, const JoinArgs& args);

struct Rung : RungInfo {
  // Preconditions: validate() passed; every tensor has one of the rung's dtypes. Work is queued on the stream without
  // waiting or allocating. On the CPU the work is done on return.
  std::function<void(const Problem&, const CastArgs&, device::Stream)> cast;
  std::function<void(const Problem&, const AddArgs&, device::Stream)> add;
  std::function<void(const Problem&, const FillArgs&, device::Stream)> fill;
  // Only for rungs with fp32; otherwise empty.
  std::function<void(const Problem&, const SplitArgs&, device::Stream)> split;
  std::function<void(const Problem&, const JoinArgs&, device::Stream)> join;
};

// From clearest to fastest. Names are unique.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::elementwise
