// The two measurements that a schedule is computed from (planning/planner.hpp), taken on the ranks that will train.
//
//   const TransferCurve curve = measure_curve(ranks, DType::f32, curve_sizes(pieces.bytes()), communication);
//   const std::vector<Seconds> ready = measure_ready(model, batch, seq);
//   schedule_buckets(pieces, agree_on_ready(ranks, ready), curve);
//
// What all ranks are given to schedule with is the same on all: the slowest rank's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.hpp"
#include "model/transformer.hpp"
#include "planning/transfer_curve.hpp"

namespace syslab::parallel {

// Sizes in bytes at which a curve for gradients of `bytes` in all is measured: 1 KiB and every fourfold of it below,
// and the whole.
std::vector<std::int64_t> curve_sizes(std::int64_t bytes);

struct CurveOptions {
  int calls =
      5;  // back to back between two events: what separates buckets that queue up, not what one call alone costs
  int rounds = 5;  // of which the median counts
};

// All-reduce on buffers of these sizes, which it takes memory for once. Collective; waits. Counted as "benchmark".
TransferCurve measure_curve(comm::Communicator& ranks, DType dtype, std::span<const std::int64_t> sizes,
                            device::Stream communication, const CurveOptions& options = {});

// When each piece of the model's gradients is final, since the backward pass began, with nobody communicating: the
// 0.9-quantile of `steps` passes over random tokens behind one that warms up. Gradients are overwritten; waits.
std::vector<Seconds> measure_ready(model::Transformer& model, std::int64_t batch, std::int64_t seq, int steps = 10);

// The latest of all ranks, piece by piece: a reduction begins when the last rank has come. Collective.
std::vector<Seconds> agree_on_ready(comm::Communicator& ranks, std::span<const Seconds> ready);

}  // namespace syslab::parallel
