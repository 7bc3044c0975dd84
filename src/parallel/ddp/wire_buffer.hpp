// Gradients in the form in which they are communicated, if it differs from storage: rounded to a smaller dtype, or
// copied together tensor by tensor. One buffer for all buckets, allocated before the first step.
#pragma once

#include "core/tensor.hpp"
#include "device/buffer.hpp"
#include "device/stream.hpp"
#include "parallel/moves.hpp"
#include "planning/bucket_schedule.hpp"

namespace syslab::parallel {

class WireBuffer {
 public:
  enum class Layout {
    as_in_arena,  // one kernel packs a bucket, including its padding
    dense         // one tensor at a time, without padding, as a framework concatenates
  };

  // `arena`: the gradients, contiguous. The buffer is used on `stream` alone. `arena`, `pieces` and `stream` outlive
  // it.
  WireBuffer(const GradientPieces& pieces, const TensorView& arena, DType wire, Layout layout, device::Stream stream);

  std::size_t bytes() const { return buffer_.bytes(); }
  // The bucket of pieces [begin, end) in the buffer.
  TensorView view(int begin, int end) const;
  // From the arena into the buffer and back, queued on the buffer's stream.
  void pack(int begin, int end) const;
  void unpack(int begin, int end) const;

 private:
  void move(int begin, int end, bool to_wire) const;

  const GradientPieces& pieces_;
  TensorView arena_;
  DType wire_;
  std::vector<std::int64_t> at_;  // of each piece, and where the last ends: elements of the buffer
  Layout layout_;
  Moves moves_;
  device::Buffer buffer_;
  device::AwaitsQueues awaits_;
};

}  // namespace syslab::parallel
