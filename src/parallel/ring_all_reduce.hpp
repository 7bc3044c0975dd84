// All-reduce around a ring of neighbours, by sends and receives alone: the algorithm that collectives' formulas speak
// of, and the one that forwards whole tensors (hand-out 2026, alternate_ring_all_reduce).
//
//   RingAllReduce ring(ranks, Ring::parts, elements, DType::f32, stream);
//   ring.run(buffer);            // every rank holds the sum
//
// Both take 2(n−1) or n−1 steps in which every rank sends to the next one and receives from the one before, at the same
// time. paper/ring_costs.hpp says what they send, paper/ring_walk.hpp does the same steps in one process. For
// measuring and learning: a backend's own all-reduce has fewer hops and no neighbour to wait for.
#pragma once

#include <cstdint>
#include <string_view>

#include "comm/communicator.hpp"
#include "device/buffer.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {

enum class Ring {
  parts,  // a part of the buffer a step: reduce-scatter, then all-gather
  whole   // the whole buffer a step, added up by whoever it passes
};

class RingAllReduce {
 public:
  // For buffers of `elements` of `dtype` in the host's memory; `ranks` and `stream` outlive it. `stream`: the CPU's
  // plain one or a queue of it, which its end waits for. Error(usage) for ranks on another device.
  RingAllReduce(comm::Communicator& ranks, Ring ring, std::int64_t elements, DType dtype, device::Stream stream);

  // buffer = the sum over ranks, queued on the stream. In `whole` sums are taken in the order in which tensors arrive,
  // another one on every rank: where sums round, ranks may differ in the last bits. In `parts` they do not.
  void run(const TensorView& buffer);

 private:
  void run_parts(const TensorView& buffer);
  void run_whole(const TensorView& buffer);
  // One step: `sent` to the next rank while `received` comes from the one before.
  void pass(const TensorView& sent, const TensorView& received);
  void add(const TensorView& to, const TensorView& from);
  TensorView room(int which, std::int64_t elements) const;

  comm::Communicator& ranks_;
  Ring ring_;
  std::int64_t elements_;
  DType dtype_;
  device::Stream stream_;
  device::Buffer rooms_[2];  // for what arrives, and, in `whole`, for what is passed on
  device::AwaitsQueues awaits_;
};

}  // namespace syslab::parallel
