// Buffers that tell when they were not written, or written beyond their ends.
#pragma once

#include <optional>
#include <string>

#include "core/tensor.hpp"
#include "device/buffer.hpp"

namespace syslab::check {

// A tensor between two guard zones. Outputs are poisoned with a NaN of a pattern no arithmetic produces, so an element
// that a kernel forgot is told from one that it computed as NaN.
class GuardedTensor {
 public:
  explicit GuardedTensor(const TensorSpec& spec) : GuardedTensor(spec, contiguous_strides(spec.shape)) {}
  // With strides: the gaps between rows are guard zones too.
  GuardedTensor(const TensorSpec& spec, const Strides& strides);

  const TensorSpec& spec() const { return spec_; }
  TensorView view() const;
  void poison();                                 // every element (and every gap) to its pattern
  std::int64_t unwritten() const;                // elements that still hold the poison
  std::optional<std::string> violation() const;  // "out: 3 bytes written before the first element (at −8)"

 private:
  TensorSpec spec_;
  Strides strides_{};
  device::Buffer buffer_;
};

// True if the element at `pointer` holds the poison of its dtype.
bool is_poison(const void* pointer, DType dtype);

}  // namespace syslab::check
