// Sharded weights, complete while they are read: gathered into slots of a fixed pool, on a separate stream, ahead of
// their use.
//
// NOTE: the order of a pass. An event for each arrow; the host waits for none:
//
//   compute        ─ begun ┐      ┌▶ reads 0 ─ done ┐   ┌▶ reads 1 ─ done ┐ …
//                          │  gathered 0        released 0│          released 1
//   communication          └▶ gather 0 ─ gather 1 ┬ └▶ gather 2 (in the slot of 0) ─ …
//                                                 └─ gathered 1
//
// NOTE: a gather. Each matrix lies in its slot as whole rows of all ranks in turn, neighbours of a bracket without
// gaps. A rank puts its part where it belongs (in the dtype in which it travels) and the all-gather is in place. Rows
// of zeros that fill the last rank's part reach into the next matrix; they come first and are overwritten, or into room
// at the end of the bracket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/units.hpp"
#include "device/stream.hpp"
#include "parallel/fsdp/context.hpp"
#include "parallel/fsdp/gather_plan.hpp"
#include "parallel/fsdp/slot_pool.hpp"

namespace syslab::parallel {

enum class PassKind { training, forward };

struct GatherOptions {
  int slots = 2;
  bool reshard_after_forward = true;  // not: all stay from the forward pass to the end of the backward pass
  bool timing = false;                // keeps the times of every gather
  bool poison = false;                // fills a slot with NaN after its last read, to detect later reads
};

// Of one unit in one pass, from the pass's begin.
struct GatherTimes {
  int unit = 0;
  bool forward = true;            // for the forward pass; otherwise for the backward pass or recomputation
  std::int64_t bytes = 0;         // of the whole unit as it is gathered
  Seconds start{}, end{};         // of the gather
  Seconds needed{}, first_use{};  // when computation reached it, and when it could continue

  Seconds exposed() const { return first_use - needed; }
};

class GatheredWeights {
 public:
  // `shards`: this rank's, as the layout has them. All that is given outlives this. Takes memory for the slots on
  // `compute`. Error(oom).
  GatheredWeights(FsdpContext& context, const TensorView& shards, const GatherOptions& options);

  // Shards are as what is queued on `compute` so far leaves them, until the pass has ended. `again`: after a training
  // pass of the same step, once its last gradient communication has been waited for: weights are unchanged, and all
  // reads are done.
  void begin(PassKind kind, bool again);
  // For work queued on `compute` from now on until done(). In the order of the parts' reads; Error(usage), which ends
  // the communication of the other ranks.
  ConstTensorView read(int bracket);
  void done(int bracket);
  void end();  // Error(usage) unless everything was read

  // Size of the slots, before allocation.
  static std::int64_t pool_bytes(const FsdpParts& parts, const ShardLayout& layout, const GatherOptions& options);

  const GatherPlan& plan(PassKind kind) const { return plans_[static_cast<std::size_t>(kind)]; }
  std::int64_t bytes() const { return pool_.bytes(); }              // of all slots
  std::int64_t unit_bytes(int unit) const;                          // that are gathered, whole
  std::uint64_t expected_bytes() const { return expected_bytes_; }  // payload of all gathers so far
  // Of the last pass, by stay; those without a gather are left out. With options.timing and both streams done.
  std::vector<GatherTimes> times() const { return times(begun_); }
  std::vector<GatherTimes> times(const device::Event& origin) const;  // from a mark of whoever timed the whole step

 private:
  struct Place {  // of a bracket in its unit's slot
    int unit = 0;
    std::int64_t offset = 0;  // bytes
  };
  TensorView view(int bracket, int slot) const;
  void gather(int stay);
  void gather_after(int stay);
  [[noreturn]] void refuse(const std::string& why);
  const GatherPlan& plan() const { return plan(kind_); }

  FsdpContext& context_;
  TensorView shards_;
  GatherOptions options_;
  std::vector<Place> places_;            // by bracket
  std::vector<std::int64_t> unit_room_;  // bytes of a slot that the unit takes
  std::vector<bool> unit_is_padded_;     // by rows of zeros, of any of its matrices
  std::vector<std::string> labels_;      // by unit
  std::vector<GatherPlan> plans_;        // by PassKind
  SlotPool pool_;
  device::AwaitsQueues awaits_;
  device::Event begun_;
  std::vector<device::Event> gathered_, released_;                   // by slot
  std::vector<device::Event> started_, ended_, needed_, first_use_;  // by stay, with timing
  PassKind kind_ = PassKind::training;
  int stay_ = 0, read_ = 0;
  bool open_ = false, lent_ = false;
  std::uint64_t expected_bytes_ = 0;
};

}  // namespace syslab::parallel
