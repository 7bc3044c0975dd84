// Buffers, on the host or on a GPU, that tell when they were not written, or written beyond their ends.
#pragma once

#include <optional>
#include <string>

#include "core/tensor.hpp"
#include "device/buffer.hpp"

namespace syslab::check {

// What is left of one pattern may have been written there; what is left of each of two was not (check/forgotten.hpp).
enum class Poison { first, second };

// A tensor between two guard zones. Outputs are poisoned with a NaN of a pattern no arithmetic produces, so an element
// that a kernel forgot is told from one that it computed as NaN.
class GuardedTensor {
 public:
  explicit GuardedTensor(const TensorSpec& spec) : GuardedTensor(spec, contiguous_strides(spec.shape)) {}
  // With strides: the gaps between rows are guard zones too.
  GuardedTensor(const TensorSpec& spec, const Strides& strides);
  // Contiguous, in the memory of the stream's device (the CPU's too), and used in the order of that stream. What tells
  // of its elements waits for them.
  GuardedTensor(const TensorSpec& spec, device::Stream stream);

  const TensorSpec& spec() const { return spec_; }
  TensorView view() const;
  void poison(Poison which = Poison::first);     // every element to it, every gap to the guards' pattern
  std::int64_t unwritten() const;                // elements that still hold the first poison
  std::int64_t nans() const;                     // elements that are NaN, the poison among them
  std::optional<std::string> violation() const;  // "out: 3 bytes written before the first element (at −8)"

  // All of its memory, guards and gaps included, and where the view begins in it: for whoever mirrors it elsewhere.
  std::byte* memory() const { return buffer_.as<std::byte>(); }
  std::size_t memory_bytes() const { return buffer_.bytes(); }
  std::size_t offset() const;

 private:
  void take_memory();
  bool on_gpu() const { return stream_.kind == device::Kind::cuda; }
  std::byte* first() const { return memory() + offset(); }

  TensorSpec spec_;
  Strides strides_{};
  device::Stream stream_;
  device::Buffer buffer_;
};

// True if the element at `pointer` holds the first poison of its dtype.
bool is_poison(const void* pointer, DType dtype);
// True if it holds a NaN that was computed from that poison: arithmetic keeps the payload and makes the NaN quiet.
bool is_made_of_poison(const void* pointer, DType dtype);
std::uint64_t poison_of(DType dtype, Poison which = Poison::first);  // its bits

}  // namespace syslab::check
