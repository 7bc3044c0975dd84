// Elements that are brought from one place to another within a rank, in the order of any stream: copied, rounded to
// another dtype, added to what is there. Tensors are contiguous, of as many elements each, and taken as one row.
#pragma once

#include "core/tensor.hpp"
#include "device/device.hpp"
#include "ops/elementwise/elementwise.hpp"

namespace syslab::parallel {

class Moves {
 public:
  explicit Moves(device::Stream stream);

  void move(const ConstTensorView& from, const TensorView& to) const;
  void add(const ConstTensorView& term, const TensorView& sum) const;

 private:
  device::Stream stream_;
  const elementwise::Rung* rung_;
};

// Elements [first, first + count) of a contiguous tensor, as one row.
TensorView stretch(const TensorView& tensor, std::int64_t first, std::int64_t count);

}  // namespace syslab::parallel
