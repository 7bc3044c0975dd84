// Whole parameters have owners, one rank each: who updates what, and how the others get it.
//
//   ParameterOwners owners(ranks, communication);
//   inner.add_group(owners.add(parameters, "lr 0.1"), …);     // of this rank alone
//   inner.step(compute);
//   owners.broadcast(compute);                                // then all ranks have all weights
//
// The largest parameter goes first, each to the rank with the least so far: no two ranks then differ by more than one
// parameter. All ranks come to the same division by themselves; that they were given the same is held against each
// other before anything moves.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "device/event.hpp"
#include "parallel/optimized_parameter.hpp"
#include "parallel/state_piece.hpp"

namespace syslab::parallel {

// An owner for each of `elements`, largest first to the smallest of `loads`, which grow by what they are given; of
// equals the first comes first, to the lowest rank.
std::vector<int> assign_owners(std::span<const std::int64_t> elements, std::vector<std::int64_t>& loads);

class ParameterOwners {
 public:
  // `communication`: the stream of the broadcasts. It and `ranks` outlive this. `left_out_wait`: for tests of tests,
  // the wait of broadcast() that is not made, 0 or 1.
  ParameterOwners(comm::Communicator& ranks, device::Stream communication, int left_out_wait = -1);

  struct Owned {
    OptimizedParameter parameter;
    int owner = 0;  // −1: frozen, nobody's
    int group = 0;
  };

  // Takes a group and returns those of it that this rank updates, frozen ones left out. A parameter that is given twice
  // in a group (a tied one) counts once. Collective. Error(usage) on every rank: ranks that give other parameters or
  // other `options`, views that do not fit, a parameter that a group before has, unless it was frozen there, a name
  // that other memory has, in this group or one before.
  std::vector<OptimizedParameter> add(std::span<const OptimizedParameter> group, const std::string& options);

  std::span<const Owned> all() const { return all_; }
  std::span<const std::int64_t> loads() const { return loads_; }  // elements, by rank

  // New weights from owner to all, behind the owner's update on `compute`, before what is queued there from now on.
  // Neighbours in memory with one owner travel together. Where a call throws on the way, the communication of all ranks
  // is ended, and what was queued of it stands before `compute` too: weights may go behind that.
  void broadcast(device::Stream compute);

  // Zeroes the gradients of all parameters, whoever owns them.
  void zero_gradients(device::Stream compute) const;

  // For parallel/sharded_checkpoint.hpp: what this rank alone updates, and rank 0 what is frozen; and what a rank is to
  // be given again: all weights, and its moments. `moment`: of the `number`-th parameter that add() returned of a
  // group.
  using MomentOf = std::function<TensorView(StatePlane plane, int group, int number)>;
  std::vector<StatePiece> own_pieces(const MomentOf& moment) const;
  std::vector<StatePiece> wanted_pieces(const MomentOf& moment) const;

  // What one broadcast() sends of all ranks' weights: every trained element once.
  std::uint64_t bytes_per_step() const;
  int broadcasts_per_step() const { return ranks_.size() > 1 ? static_cast<int>(runs_.size()) : 0; }

 private:
  struct Run {
    TensorView weights;
    int owner = 0;
    std::string label;
  };
  void expect_new(std::span<const OptimizedParameter> group) const;
  void plan_runs();
  void leave_behind(device::Stream compute) noexcept;
  bool is_repeated(const Owned& frozen) const;
  void add_moments(std::vector<StatePiece>& pieces, const MomentOf& moment) const;

  comm::Communicator& ranks_;
  device::Stream communication_;
  int left_out_wait_, groups_ = 0;
  std::vector<Owned> all_;
  std::vector<std::int64_t> loads_;
  std::vector<Run> runs_;
  device::Event updated_, arrived_;
};

}  // namespace syslab::parallel
