// Sums gradients over all ranks while the backward pass still computes others.
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
// Communication uses one stream, so that waiting for its last bucket waits for all. The optimizer's stream carries the
// next step's backward pass: no gradient is written before its reduction is done.
//
// All ranks use the same order, that of memory, enforced by parallel/ddp/gradient_turns.hpp; buckets are queued in
// schedule order.
//
// The caller takes the mean over ranks: scaling the loss gradient by this rank's share of the samples needs no kernel
// (train::StepOptions::loss_weight).
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
  // `communication` and the stream of the last step outlive this. All ranks pass the same pieces and options. All
  // memory and events are created here, none in a step. Error(usage).
  GradientSync(comm::Communicator& ranks, GradientPieces pieces, const TensorView& arena, const SyncOptions& options,
               device::Stream communication);
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;
  // If an exception left a step unfinished, this ends the communication of all ranks. Afterwards only work queued later
  // on a GPU's compute stream uses the gradients.
  ~GradientSync() { turns_.leave(communication_, compute_); }

  const GradientPieces& pieces() const { return pieces_; }
  const BucketSchedule& schedule() const { return schedule_; }
  const SyncOptions& options() const { return options_; }
  device::Stream stream() const { return communication_; }
  // Size of the buffer for gradients communicated in another form than they are stored; 0 without one.
  std::size_t wire_bytes() const { return wire_ ? wire_->bytes() : 0; }

  // Before the first gradient of a step that communicates: of an accumulated step, the backward pass of its last part.
  void begin(device::Stream compute);

  // No kernel of this step writes this gradient: it is zeroed and counts as final in its turn. After begin(), before
  // its turn has passed. (One that an earlier part of an accumulated step has written is final as it is: grad_final().)
  void unused(int piece, device::Stream compute);

  // Call when all work that writes the gradient is queued on `compute`; once per piece, in order.
  void grad_final(int piece, device::Stream compute);

  // Call after all pieces. Error(usage) naming missing ones; Error(comm) if communication is known to have failed.
  void finish(device::Stream compute);

  std::uint64_t steps() const { return steps_; }  // finished
  // Payload of the all-reduces of all steps so far. Error(check) with both numbers if the communicator counted another
  // number under "gradient" since construction. A single rank sends nothing.
  std::uint64_t expected_bytes() const;
  void check_bytes() const;

  // Of the last step, from begin() or from `origin`, a mark of whoever timed the whole step: times from two origins
  // cannot be subtracted. With options().timing, more than one rank, and both streams done; Error(usage).
  BucketTimeline timeline() const { return timeline(begun_); }
  BucketTimeline timeline(const device::Event& origin) const;

 private:
  void reduce_final(device::Stream compute);
  void reduce(int bucket, device::Stream compute);
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
  std::uint64_t steps_ = 0, counted_before_ = 0;
};

}  // namespace syslab::parallel
