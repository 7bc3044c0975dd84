// The norm of gradients that many ranks have parts of, and what all of them multiply their parts with so that it stays
// below a limit: as ops/global_norm, with one number a rank on the wire and no wait of the host.
//
//   ShardNorm norm(ranks, rung, own_stretches, compute, communication);
//   norm.queue({.norm = …, .factor = …, .non_finite = …, .max_norm = 1.0}, compute);
//
// It is a norm of norms: of each stretch, of those on each rank, of the ranks'. Every one is rounded to the statistics'
// dtype, so that in fp32 the result is within 3 · 2^-24 of that of one process, to first order; it is the same bits on
// all ranks, which read the same numbers in the same order. An infinity or a NaN in any part makes the whole one.
#pragma once

#include <limits>
#include <vector>

#include "comm/communicator.hpp"
#include "device/buffer.hpp"
#include "device/stream.hpp"
#include "ops/global_norm/global_norm.hpp"
#include "parallel/step_observer.hpp"

namespace syslab::parallel {

class ShardNorm {
 public:
  // `own`: what this rank counts, contiguous and of one dtype; each element of the gradients is counted by one rank
  // alone, and a rank may have none. All memory is made here. `ranks`, the streams, the stretches' memory and
  // `observer` outlive this, whose end waits for streams that are queues of the CPU.
  ShardNorm(comm::Communicator& ranks, const global_norm::Rung& rung, std::vector<ConstTensorView> own, DType dtype,
            device::Stream compute, device::Stream communication, StepObserver* observer = nullptr);

  // Of one element each, in memory of `compute`, as of global_norm::NormArgs. `losses`: what must be finite besides; no
  // memory: nothing. `non_finite` becomes the number of ranks that have one that is not: the same on all.
  struct Places {
    TensorView norm, factor;
    std::int64_t* non_finite = nullptr;
    ConstTensorView grad_scale;
    double max_norm = std::numeric_limits<double>::infinity();
    ConstTensorView losses;
  };
  // Collective. Behind what is queued on `compute`, before what is queued there from now on.
  void queue(const Places& places, device::Stream compute);

 private:
  void norm_of(const ConstTensorView& values, global_norm::NormArgs args, device::Stream stream);

  comm::Communicator& ranks_;
  const global_norm::Rung* rung_;
  std::vector<ConstTensorView> own_;
  DType statistics_;
  device::Stream communication_;
  StepObserver* observer_;
  device::Buffer numbers_, workspace_;
  device::AwaitsQueues awaits_;
  // Of the stretches, of this rank's gradients and losses, of all ranks', and what nobody reads.
  TensorView of_stretches_, of_rank_, of_losses_, of_ranks_, of_all_losses_, unread_;
  device::Event known_, arrived_;
};

}  // namespace syslab::parallel
