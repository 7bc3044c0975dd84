// Full sharding: each rank keeps a part of every matrix, with its gradient and (if it updates the part) its moments; a
// matrix is complete only while it is read.
//
//   Fsdp fsdp(ranks, parts, {.gather = {.slots = 2}}, compute, communication);
//   fsdp.begin(PassKind::training, false);
//   … forward and backward: gathered().read(), done(); scattered().place(), final() …
//   fsdp.end();
//   fsdp.finish();                  // what is queued on `compute` from now on finds the sums in gradients()
//
// All memory is allocated in the constructor, none in a step: shards, and slots for complete matrices (bytes()).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/stream.hpp"
#include "parallel/fsdp/gathered_weights.hpp"
#include "parallel/fsdp/scattered_gradients.hpp"

namespace syslab::parallel {

struct FsdpOptions {
  GatherOptions gather;
  ScatterOptions scatter;
  StepObserver* observer = nullptr;  // outlives the Fsdp
};

class Fsdp {
 public:
  // Shards are initially zero. Collective: compares the ranks' parts and options. `ranks` and the streams must outlive
  // this; the destructor waits for CPU queues. Error(usage), Error(oom).
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

  // Keeps this rank's part of elements [first, first + values.elements()) of a complete matrix, or of a replicated
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

  // Error(check) with both numbers unless this rank's communication so far matches the gather plan.
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
