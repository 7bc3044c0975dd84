// Gradients of sharded weights: a backward pass writes complete gradients into slots of a fixed pool, and each rank
// gets the sum over all ranks of its own part; replicated ones are summed on every rank.
//
// NOTE: the order of a step. An event for each arrow; the host waits for none:
//
//   compute        ─ gradient 0 ┐ ─ gradient 1 ┐   ┌▶ gradient 2 ┐ … ───────────┬▶ optimizer
//                           ready 0        ready 1 │          ready 2        reduced
//   communication               └▶ scatter 0 ──────┴▶ scatter 1 ─┴▶ … ─ norms ──┘
//                                          free 0 (the slot of 2)
//
// NOTE: gradients that travel rounded. What products make they write so, into slots that are smaller; the rest is
// rounded on its way. The sums of a rank's own part come rounded, too, and are widened to where they stay.
//
// Sums are over ranks; the mean is the caller's (parallel/ddp/gradient_sync.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/buffer.hpp"
#include "device/stream.hpp"
#include "parallel/fsdp/context.hpp"
#include "parallel/fsdp/slot_pool.hpp"

namespace syslab::parallel {

struct ScatterOptions {
  int slots = 2;
  // Gradients are rounded to this dtype (bf16, f16) before they travel between ranks. Nothing: as they are.
  std::optional<DType> wire;
};

class ScatteredGradients {
 public:
  // `shards`: this rank's gradients, as the layout has them. All that is given outlives this. Takes memory for the
  // slots on `compute`. Error(usage); Error(oom).
  ScatteredGradients(FsdpContext& context, const TensorView& shards, const ScatterOptions& options);

  // Begins a pass with weights gathered on the same stream; `add`: its gradients are added to those of earlier passes
  // in this step.
  void begin(bool add);
  // Where the gradient of a bracket is written, whole, by work queued on `compute` from now on until it is final; in
  // the dtype in which it travels, where products make it in that one. Brackets in their order, each once;
  // Error(usage), which ends the communication of the other ranks.
  TensorView place(int bracket);
  void final(int bracket);
  // What is replicated, by tensor: written, or added to, in its place; and told when all that writes it is queued.
  TensorView replicated(int tensor) const { return context_.replicated(shards_, tensor); }
  void replicated_final() { unsent_ = true; }
  // After the last backward pass of a step: what is queued on `compute` from now on finds all sums.
  void finish();

  std::int64_t bytes() const;  // of slots and of what travels
  // The same before there are any.
  static std::int64_t pool_bytes(const FsdpParts& parts, const ShardLayout& layout, const ScatterOptions& options);
  std::uint64_t scattered_bytes() const { return scattered_bytes_; }  // payload of all reduce-scatters so far
  std::uint64_t reduced_bytes() const { return reduced_bytes_; }      // and of all all-reduces

 private:
  int slot_of(int bracket) const { return bracket % pool_.size(); }
  TensorView whole(int bracket) const;
  bool is_straight(DType sent) const { return !add_ && sent == shards_.dtype; }  // sums go where they stay
  void scatter(int bracket, int matrix, std::int64_t first, const TensorView& received);
  void keep(const TensorView& received, int matrix);
  void clear_padding(int matrix);

  FsdpContext& context_;
  TensorView shards_;
  DType wire_dtype_;
  SlotPool pool_;
  device::Buffer wire_;      // of one matrix that is rounded on its way
  device::Buffer received_;  // what came of a matrix, or rounded of a bracket's
  device::AwaitsQueues awaits_;
  std::vector<std::string> labels_;  // by bracket
  device::Event last_, reduced_;
  std::vector<device::Event> ready_, free_;  // by slot
  std::vector<char> busy_;                   // by slot: in this pass
  int next_ = 0;
  bool add_ = false, unsent_ = false;
  std::uint64_t scattered_bytes_ = 0, reduced_bytes_ = 0;
};

}  // namespace syslab::parallel
