// Full sharding: of every matrix of a model each rank keeps a part, its gradient and (who updates it) its moments;
// whole it is only while it is read.
//
//   Fsdp fsdp(ranks, parts, {.gather = {.slots = 2}}, compute, communication);
//   fsdp.begin(PassKind::training, false);
//   … forward and backward: gathered().read(), done(); scattered().place(), final() …
//   fsdp.end();
//   fsdp.finish();                  // what is queued on `compute` from now on finds the sums in gradients()
//
// Memory is made in the constructor, none in a step: shards, and slots for what is whole (bytes()).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/stream.hpp"
#include "parallel/fsdp/gathered_weights.hpp"
#include "parallel/fsdp/scattered_gradients.hpp"
#include "parallel/state_piece.hpp"

namespace syslab::parallel {

struct FsdpOptions {
  GatherOptions gather;
  ScatterOptions scatter;
  // For tests of tests: the wait of a step, counted from 0 as they are made, that is not made.
  int left_out_wait = -1;
};

class Fsdp {
 public:
  // Shards are zero. Collective: holds parts and options against each other. `ranks` and the streams outlive this,
  // whose end waits for those that are queues of the CPU. Error(usage), Error(oom).
  Fsdp(comm::Communicator& ranks, FsdpParts parts, const FsdpOptions& options, device::Stream compute,
       device::Stream communication);
  Fsdp(const Fsdp&) = delete;
  Fsdp& operator=(const Fsdp&) = delete;

  const FsdpParts& parts() const { return parts_; }
  const ShardLayout& layout() const { return layout_; }
  const FsdpOptions& options() const { return options_; }
  GatheredWeights& gathered() { return gathered_; }
  const GatheredWeights& gathered() const { return gathered_; }
  ScatteredGradients& scattered() { return scattered_; }

  // This rank's, as the layout has them: (elements), padding too, which is zero.
  TensorView weights() const { return whole(weights_); }
  TensorView gradients() const { return whole(gradients_); }
  TensorView replicated(int tensor) const { return context_.replicated(weights(), tensor); }  // its weights
  std::size_t shard_bytes() const { return weights_.bytes() + gradients_.bytes(); }
  std::int64_t slot_bytes() const { return gathered_.bytes() + scattered_.bytes(); }

  // Keeps what is this rank's of elements [first, first + values.elements()) of a whole matrix, or of a replicated
  // tensor: row-major, on the host, of any floating dtype. Waits.
  void write(int matrix, std::int64_t first, const ConstTensorView& values);
  void write_replicated(int tensor, std::int64_t first, const ConstTensorView& values);
  // A whole matrix, on the host, of every rank. Collective; waits; takes memory for it.
  std::vector<double> gather_now(int matrix);
  std::vector<double> read_replicated(int tensor) const;

  // One forward pass, or a forward pass and its backward pass; `add`: to the gradients of those before in this step.
  void begin(PassKind kind, bool add = false);
  void end();
  // After the last pass of a step.
  void finish();

  // For parallel/sharded_checkpoint.hpp: this rank's rows, and what is replicated where that is asked for. `moment`: of
  // all shards, laid out as weights().
  std::vector<StatePiece> pieces(const std::function<TensorView(StatePlane)>& moment, bool replicated) const;

  int waits_of_step() const { return context_.waits.made(); }  // of the last step, or of this one so far
  // Error(check) with both numbers unless this rank's communication since the beginning was what the plan says.
  void check_bytes() const;

 private:
  TensorView whole(const device::Buffer& buffer) const { return {buffer.data(), parts_.dtype, {layout_.elements()}}; }
  void write_at(std::int64_t offset, std::int64_t begin, std::int64_t end, std::int64_t first,
                const ConstTensorView& values);
  std::string description() const;

  comm::Communicator& ranks_;
  FsdpParts parts_;
  FsdpOptions options_;
  device::Stream compute_, communication_;
  ShardLayout layout_;
  device::Buffer weights_, gradients_;
  device::AwaitsQueues awaits_;
  FsdpContext context_;
  GatheredWeights gathered_;
  ScatteredGradients scattered_;
  bool in_step_ = false;
  struct Counted {
    std::uint64_t gathered = 0, scattered = 0, reduced = 0;
  };
  Counted counted() const;
  Counted counted_before_;
};

}  // namespace syslab::parallel
