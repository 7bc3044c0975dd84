// AdamW as frameworks have it: groups of parameters, each with options of its own, a group at a time and at any time.
//
//   GroupedAdamW optimizer(rung, stream);
//   optimizer.add_group(parameters, {.lr = 0.1, .weight_decay = 0.1});
//   … gradients are there …
//   optimizer.step(stream);
//
// A group counts its own steps: one that is added in the middle of training begins with the first. Frozen parameters
// are left alone and have no state.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "device/event.hpp"
#include "device/stream.hpp"
#include "parallel/optimized_parameter.hpp"
#include "parallel/owned_update.hpp"

namespace syslab::parallel {

class GroupedAdamW {
 public:
  using Options = adamw::Options;
  static std::string text_of(const Options& options);  // all of them, told apart to the last bit

  // `rung` runs on the device of `stream`, on which memory is made. `stream` outlives this, whose end waits for it
  // where it is a queue of the CPU; for another that was given to step(), who destroys this has waited, as of
  // OwnedUpdate.
  GroupedAdamW(const adamw::Rung& rung, device::Stream stream) : rung_(&rung), stream_(stream) {}

  // Takes memory for their moments. Error(usage) for options that make no sense; Error(oom).
  void add_group(std::span<const OptimizedParameter> parameters, const Options& options);
  void set_learning_rate(int group, double rate);  // from the next step on
  void step(device::Stream stream);

  int groups() const { return static_cast<int>(groups_.size()); }
  std::size_t state_bytes() const;  // of all moments

  // For who saves and resumes: a moment of the `number`-th trained parameter of a group, as one row, and the steps that
  // each group has taken. Error(usage) for steps of another number of groups.
  TensorView moment(StatePlane plane, int group, int number) const;
  std::vector<std::int64_t> steps() const;
  void set_steps(std::span<const std::int64_t> steps);

 private:
  struct Group {
    Options options;
    OwnedUpdate update;
    device::Buffer numbers, staged;
    device::Event copied;
    device::AwaitsQueues awaits;
    std::int64_t steps = 0;
  };

  const adamw::Rung* rung_;
  device::Stream stream_;
  std::deque<Group> groups_;
};

}  // namespace syslab::parallel
