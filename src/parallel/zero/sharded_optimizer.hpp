// Any optimizer, its state divided among the ranks: each parameter as a whole has one owner, who alone keeps state for
// it, updates it, and sends the new weights to the others. The hand-outs' optimizer_state_sharding.
//
//   ShardedOptimizer<GroupedAdamW> optimizer(ranks, communication, rung, compute);
//   optimizer.add_group(parameters, {.lr = 1e-3});       // now or in the middle of training
//   … gradients, the same on all ranks …
//   optimizer.step(compute);
//
// An optimizer `Inner` is wrapped by having
//
//   using Options = …;                                   // of a group
//   static std::string text_of(const Options&);          // what ranks must have alike
//   void add_group(std::span<const OptimizedParameter>, const Options&);
//   void step(device::Stream);
//   std::size_t state_bytes() const;
//
// Every rank's inner optimizer has all groups, some of them empty, so that a group's number is the same everywhere.
#pragma once

#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/zero/parameter_owners.hpp"

namespace syslab::parallel {

template <typename T>
concept WrappedOptimizer = requires(T optimizer, std::span<const OptimizedParameter> parameters,
                                    const typename T::Options& options) {
  { T::text_of(options) } -> std::convertible_to<std::string>;
  optimizer.add_group(parameters, options);
  optimizer.step(device::Stream{});
  { optimizer.state_bytes() } -> std::convertible_to<std::size_t>;
};

template <WrappedOptimizer Inner>
class ShardedOptimizer {
 public:
  // The inner optimizer is made of `arguments`; `ranks` and all streams outlive this.
  template <typename... Arguments>
  ShardedOptimizer(comm::Communicator& ranks, device::Stream communication, Arguments&&... arguments)
      : ShardedOptimizer(ParameterOwners(ranks, communication), std::forward<Arguments>(arguments)...) {}
  template <typename... Arguments>
  explicit ShardedOptimizer(ParameterOwners owners, Arguments&&... arguments)
      : owners_(std::move(owners)), inner_(std::forward<Arguments>(arguments)...) {}

  // Collective. What can be wrong with a group is told as of ParameterOwners::add.
  void add_group(std::span<const OptimizedParameter> parameters, const typename Inner::Options& options) {
    inner_.add_group(owners_.add(parameters, Inner::text_of(options)), options);
  }

  // Collective. What is queued on `compute` from now on finds the new weights, on every rank.
  void step(device::Stream compute) {
    inner_.step(compute);
    owners_.broadcast(compute);
  }
  // Calls `closure`, which queues the gradients and returns the loss, then steps.
  double step(device::Stream compute, const std::function<double()>& closure) {
    const double loss = closure();
    step(compute);
    return loss;
  }

  void zero_gradients(device::Stream compute) const { owners_.zero_gradients(compute); }

  const Inner& inner() const { return inner_; }
  const ParameterOwners& owners() const { return owners_; }
  std::size_t state_bytes() const { return inner_.state_bytes(); }  // of this rank

 private:
  ParameterOwners owners_;
  Inner inner_;
};

}  // namespace syslab::parallel
