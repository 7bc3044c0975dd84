// Gradients summed over all ranks while the backward pass still makes them.
//
//   GradientSync sync(ranks, pieces, arena, {.strategy = Strategy::bucketed, .bucket_mb = {25}}, communication);
//   sync.begin(compute);
//   … the last kernel that writes a gradient is queued on `compute`:  sync.grad_final(piece, compute);
//   sync.finish(compute);        // what is queued on `compute` from now on finds the sums
//
// NOTE: the order of a step. Two streams, and an event for each arrow; the host waits for neither:
//
//   compute        ─ g0 ─ g1 ─┐ ─ g2 ─ g3 ─┐ ─ … ─────────────────┬▶ optimizer
//                        ready 0      ready 1                 reduced
//   communication             └▶ all-reduce 0 ─▶ all-reduce 1 ─ … ┘
//
// Communication is one stream, so that waiting for its last bucket is waiting for all. The optimizer's stream carries
// the next step's backward pass: no gradient is written before its reduction is done.
//
// One order on all ranks, that of the memory, which parallel/ddp/gradient_turns.hpp keeps; buckets are queued in the
// schedule's.
//
// The mean over ranks is the caller's: who scales the gradient of the loss by this rank's share of the samples needs no
// kernel for it, and sums here (train::StepOptions::loss_weight).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "device/event.hpp"
#include "parallel/ddp/gradient_turns.hpp"
#include "parallel/ddp/wire_buffer.hpp"
#include "parallel/strategy.hpp"
#include "planning/planner.hpp"

namespace syslab::parallel {

class GradientSync {
 public:
  // `arena`: contiguous, of the pieces' dtype, all of them inside; the communicator, the arena's memory,
  // `communication` and the stream of the last step outlive this. All ranks give the same pieces and options. All
  // memory and events are made here, none in a step. Error(usage).
  GradientSync(comm::Communicator& ranks, GradientPieces pieces, const TensorView& arena, const SyncOptions& options,
               device::Stream communication);
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;
  // A step that was begun and not finished, because of an exception, ends the communication of all ranks. When this is
  // gone nothing uses the gradients any more but what is queued on the compute stream of a GPU behind it.
  ~GradientSync() { turns_.leave(communication_, compute_); }

  const GradientPieces& pieces() const { return pieces_; }
  const BucketSchedule& schedule() const { return schedule_; }
  const SyncOptions& options() const { return options_; }
  device::Stream stream() const { return communication_; }
  // Of gradients as they travel, where that is not as they lie.
  std::size_t wire_bytes() const { return wire_ ? wire_->bytes() : 0; }

  // Before the first gradient of a step that communicates: of an accumulated step, the backward pass of its last part.
  void begin(device::Stream compute);

  // No kernel of this step writes this gradient: it is zeroed and counts as final in its turn. After begin(), before
  // its turn has passed. (One that an earlier part of an accumulated step has written is final as it is: grad_final().)
  void unused(int piece, device::Stream compute);

  // Everything that writes the gradient is queued on `compute`. Each once, in the order of the pieces.
  void grad_final(int piece, device::Stream compute);

  // After all of them. Error(usage) naming those that never came; Error(comm) where the communication is known to have
  // failed.
  void finish(device::Stream compute);

  std::uint64_t steps() const { return steps_; }  // finished
  // What all steps so far had to send: the payload of their all-reduces. Error(check) with both numbers where the
  // communicator counted anything else under "gradient" since this was made. One rank alone sends nothing.
  std::uint64_t expected_bytes() const;
  void check_bytes() const;

  // Of the last step, from begin(). With options().timing, more than one rank, and both streams done; Error(usage).
  BucketTimeline timeline() const;

 private:
  void reduce_final(device::Stream compute);
  void reduce(int bucket, device::Stream compute);
  void wait(const device::Event& event, device::Stream later);
  TensorView sent(int bucket) const;
  std::string description() const;

  comm::Communicator& ranks_;
  GradientPieces pieces_;
  TensorView arena_;
  SyncOptions options_;
  BucketSchedule schedule_;
  GradientTurns turns_;
  device::Stream communication_;
  bool overlaps_;
  std::optional<WireBuffer> wire_;
  device::Event begun_, reduced_;
  std::vector<device::Event> ready_, started_, ended_;  // by bucket; the latter two with timing
  std::vector<std::string> labels_;                     // "bucket 3"
  device::Stream compute_;                              // of the last step
  int waits_ = 0;
  std::uint64_t steps_ = 0, counted_before_ = 0;
};

}  // namespace syslab::parallel
