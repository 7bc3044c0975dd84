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
#include "parallel/optimized_parameter.hpp"
#include "parallel/step_observer.hpp"
#include "planning/owners.hpp"

namespace syslab::parallel {

class ParameterOwners {
 public:
  // `communication`: the stream of the broadcasts. It, `ranks` and `observer` outlive this.
  ParameterOwners(comm::Communicator& ranks, device::Stream communication, StepObserver* observer = nullptr);

  struct Owned {
    OptimizedParameter parameter;
    int owner = 0;  // −1: frozen, nobody's
    int group = 0;
  };

  // Takes a group and returns those of it that this rank updates, frozen ones left out. A parameter that is given twice
  // in a group (a tied one) counts once. Collective. Error(usage) on every rank: ranks that give other parameters or
  // other `options`, views that do not fit, a parameter that a group before has, unless it was frozen there.
  std::vector<OptimizedParameter> add(std::span<const OptimizedParameter> group, const std::string& options);

  std::span<const Owned> all() const { return all_; }
  std::span<const std::int64_t> loads() const { return loads_; }  // elements, by rank

  // New weights from owner to all, behind the owner's update on `compute`, before what is queued there from now on.
  // Neighbours in memory with one owner travel together. Where a call throws on the way, the communication of all ranks
  // is ended, and what was queued of it stands before `compute` too: weights may go behind that.
  void broadcast(device::Stream compute);

  // Zeroes the gradients of all parameters, whoever owns them.
  void zero_gradients(device::Stream compute) const;

 private:
  struct Run {
    TensorView weights;
    int owner = 0;
    std::string label;
  };
  void expect_new(std::span<const OptimizedParameter> group) const;
  void plan_runs();
  void leave_behind(device::Stream compute) noexcept;

  comm::Communicator& ranks_;
  device::Stream communication_;
  StepObserver* observer_;
  int groups_ = 0;
  std::vector<Owned> all_;
  std::vector<std::int64_t> loads_;
  std::vector<Run> runs_;
  device::Event updated_, arrived_;
};

}  // namespace syslab::parallel
