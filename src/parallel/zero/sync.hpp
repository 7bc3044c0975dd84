// Gradients scattered, weights gathered: ZeRO's first two stages over flat ranges (parallel/zero/flat_shards.hpp).
//
//   ZeroSync sync(ranks, pieces, weights, gradients, {.sharding = Sharding::zero1, .schedule = schedule},
//   communication); sync.begin(compute); write(sync.gradient(piece, compute)); sync.grad_final(piece, compute); // in
//   the order of the pieces sync.finish(compute);                                                        // the sums
//   are in gradient_slice() for (int bucket = sync.buckets(); bucket-- > 0;) { update its slice; sync.updated(bucket,
//   compute); } … the next forward pass, before it reads a piece:  sync.needed(piece, compute);
//
// NOTE: the order of a step. Two streams, and an event for each arrow; the host waits for neither:
//
//   compute        ─ g0 ─┐ ─ g1 ─┐ ─ … ┬▶ update 1 ─┐─ update 0 ─┐ ─ forward ┬▶ layer of 1 ┬▶ layer of 0 …
//                     ready 0  ready 1 │        updated 1   updated 0        │             │
//   communication         └▶ scatter 0 ─▶ scatter 1   └▶ gather 1 ─└▶ gather 0 ────────────┘
//
// A backward pass finishes buckets from the first to the last and a forward pass reads them from the last to the first,
// so that weights are gathered in the opposite order and are there when they are first read.
//
// NOTE: copies. Where products read weights rounded to two bytes, that is what travels: each rank rounds its slice and
// the copies are gathered, half the bytes. Pieces of which the weights themselves are read (norms, an embedding) come
// in full, too: a bucket of nothing else is gathered as weights, and copied where it arrives; of another bucket each
// part of such a piece is broadcast by its owner, in one group with the copies. Behind a step a rank has then the
// weights of its own slices and of these pieces, and copies of all; of the rest its weights are old until
// gather_weights().
//
// NOTE: whose memory. The first stage scatters in the arena that the gradients lie in: behind finish() a rank's own
// slices hold sums and the rest anything. The second has no such arena. A bucket's gradients are written into one of a
// few slots, which are used in turn; a slot is free once its bucket has been scattered, and what is kept is the rank's
// shard. With gradients in parts, each part of a step is scattered and added to the shard in fp32, where the first
// stage adds in the arena and scatters the last part.
//
// NOTE: updates in turn. A slice may be updated as soon as its sums are there, under the rest of the backward pass, and
// its weights go at once: all of a bucket in the stream that communicates. Once a piece's gradient is final, nothing
// reads its weights any more (model::GradFinal).
//
//   compute        ─ g0 ─┐ ─ g1 ─┐ ─ … ──────────────────────────────┬▶ forward ┬▶ layer of 1 ┬▶ layer of 0 …
//   communication        └▶ scatter 0 ▶ update 0 ▶ gather 0 ▶ scatter 1 ▶ update 1 ─┘ ▶ gather 1
//
// NOTE: gradients that travel rounded do so out of slots, in the first stage too (parallel/zero/bucket_slots.hpp): what
// the backward pass writes rounded is written there, the rest is rounded into them on its way. A rank's slices get the
// sums, widened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "device/buffer.hpp"
#include "device/event.hpp"
#include "parallel/ddp/gradient_turns.hpp"
#include "parallel/moves.hpp"
#include "parallel/state_memory.hpp"
#include "parallel/step_observer.hpp"
#include "parallel/zero/bucket_slots.hpp"
#include "parallel/zero/flat_shards.hpp"

namespace syslab::parallel {

struct ZeroOptions {
  Sharding sharding = Sharding::zero1;      // or zero2
  std::optional<BucketSchedule> schedule;   // none: all in one bucket
  std::optional<RoundedGradients> rounded;  // none: gradients travel as they are
  int slots = 2;                            // of zero2, and of rounded gradients
  // A slot holds NaNs from when it is free to when it is written again; and where only a copy arrives, weights do until
  // gather_weights().
  bool poison = false;
  StepObserver* observer = nullptr;  // outlives the ZeroSync
};

struct WeightsCopy {
  TensorView values;              // all of the arena, in a smaller dtype; no memory: there is none
  std::vector<int> read_in_full;  // pieces of which the weights are read, not the copy; ascending
};

class ZeroSync {
 public:
  // `weights`: the arena, contiguous, with as many elements as `gradients` of which zero2 has none: no memory is given
  // then. All ranks give the same. All memory and events are made here, none in a step. What is given and the stream of
  // the last pass outlive this. Error(usage).
  ZeroSync(comm::Communicator& ranks, GradientPieces pieces, const TensorView& weights, const TensorView& gradients,
           const ZeroOptions& options, device::Stream communication, WeightsCopy copy = {});
  ZeroSync(const ZeroSync&) = delete;
  ZeroSync& operator=(const ZeroSync&) = delete;
  ~ZeroSync() { leave(); }

  const GradientPieces& pieces() const { return pieces_; }
  const FlatShards& shards() const { return shards_; }
  const ZeroOptions& options() const { return options_; }
  device::Stream stream() const { return communication_; }

  // Queues the update of this rank's slice of a bucket.
  using SliceUpdate = std::function<void(int bucket, device::Stream stream)>;
  // Before the first gradient of a backward pass that is scattered: of zero1, that of the last part of a step; of
  // zero2, each. `add`: to what earlier parts have left in the shard (zero2). `update`, in the last part of a step:
  // slices are updated in turn; updated() is not called then, and unused() of a piece that the pass reads comes behind
  // that.
  void begin(device::Stream compute, bool add = false, SliceUpdate update = {});
  // Where a piece's gradient is to be written by what is queued on `compute` from now on; rounded where
  // RoundedGradients says that it is.
  TensorView gradient(int piece, device::Stream compute);
  bool is_written_rounded(int piece) const { return slots_ && slots_->is_written_rounded(piece); }
  // As GradientSync's; what is unused is zeroed in its turn.
  void unused(int piece, device::Stream compute);
  void grad_final(int piece, device::Stream compute);
  // After all of them: the end of a backward pass, and of the last one of a step, behind which sums are in
  // gradient_slice(), or their updates are done.
  void finish_part();
  void finish(device::Stream compute);

  int buckets() const { return shards_.buckets(); }
  // This rank's slice of a bucket: its sums behind finish(), and its weights.
  TensorView gradient_slice(int bucket) const;
  TensorView weight_slice(int bucket) const;
  // Of the copy, which whoever updates the slice writes with it; no memory where only weights travel.
  TensorView copy_slice(int bucket) const;

  // The slice's new weights, and their copy, are queued on `compute`: the others get them. Each bucket once, on all
  // ranks in one order.
  void updated(int bucket, device::Stream compute);
  // What is queued on `compute` from now on finds all weights of the piece, or of all pieces.
  void needed(int piece, device::Stream compute);
  void all_needed(device::Stream compute);

  // Whether this rank has all weights, or will when what is on its way has come.
  bool whole() const { return whole_; }
  // Makes it so: what is queued on `compute` from now on finds all weights, not their copies alone. Collective; moves
  // nothing where it is so already. Counted as "export", as what no step needs.
  void gather_weights(device::Stream compute);

  // Bytes of gradients that this holds besides what it was given: slots and shard.
  std::size_t gradient_bytes() const { return (slots_ ? slots_->bytes() : 0) + shard_.bytes(); }

  // What all ranks' operations so far had to carry, and Error(check) with both numbers where the communicator counted
  // anything else under "gradient" or "parameter" since this was made.
  std::uint64_t expected_bytes() const { return expected_; }
  void check_bytes() const;
  // That the copy is what all weights are rounded to, bit for bit; gathers them. Collective; waits. Error(check) on
  // every rank.
  void check_copy(device::Stream compute);

  // For who ends before this does and has memory that queued updates in turn read: behind this they use it no more, as
  // GradientTurns::leave() says.
  void leave() noexcept { turns_.leave(communication_, compute_); }

 private:
  TensorView bucket_view(int bucket) const;
  TensorView shard_view(int bucket) const;
  void enter(int bucket, device::Stream compute);
  void scatter_final(device::Stream compute);
  void scatter(int bucket, device::Stream compute);
  void clear_rest(int bucket, device::Stream compute) const;
  void gather(int bucket);
  void plan_copies();
  bool copies_travel(int bucket) const { return copies_travel_[static_cast<std::size_t>(bucket)] != 0; }
  void gather_copies(int bucket);
  void spoil_weights(int bucket) const;
  std::string description() const;
  std::uint64_t counted() const;
  void hear_failure() const;

  comm::Communicator& ranks_;
  GradientPieces pieces_;
  FlatShards shards_;
  ZeroOptions options_;
  GradientTurns turns_;
  TensorView weights_, gradients_;
  WeightsCopy copy_;
  device::Stream communication_, compute_;  // the latter of the last pass
  Moves moves_;
  std::optional<BucketSlots> slots_;
  device::Buffer shard_;  // zero2
  device::Event reduced_;
  std::vector<device::Event> ready_, updated_, gathered_, freed_;  // by bucket; the last by slot
  std::vector<std::string> labels_;
  struct Part {
    Stretch at;  // of a piece that is read in full
    int owner = 0;
  };
  std::vector<char> copies_travel_;       // by bucket
  std::vector<std::vector<Part>> parts_;  // by bucket: parts received in full in addition to copies
  bool whole_ = true;
  std::vector<char> on_its_way_;                 // gathers, by bucket
  std::vector<std::uint64_t> slot_used_;         // by slot: the number of the scatter that used it last
  std::uint64_t scatters_ = 0, waited_for_ = 0;  // queued so far; up to which compute has waited
  int entered_ = -1, scattered_ = 0;             // buckets: the last being written, those on their way
  bool add_ = false;
  SliceUpdate update_;
  std::uint64_t expected_ = 0, counted_before_ = 0;
};

}  // namespace syslab::parallel
