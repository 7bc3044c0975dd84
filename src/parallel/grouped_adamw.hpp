// AdamW as in frameworks: groups of parameters, each with its own options, added one at a time at any time.
//
//   GroupedAdamW optimizer(rung, stream);
//   optimizer.add_group(parameters, {.lr = 0.1, .weight_decay = 0.1});
//   … gradients are there …
//   optimizer.step(stream);
//
// A group counts its own steps: one added during training begins with step 1. Frozen parameters are left alone and have
// no state.
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

  // `rung` runs on the device of `stream`, on which memory is made. `stream` must outlive this; the destructor waits
  // for it if it is a CPU queue; for another that was given to step(), who destroys this has waited, as of OwnedUpdate.
  GroupedAdamW(const adamw::Rung& rung, device::Stream stream) : rung_(&rung), stream_(stream) {}

  // Takes memory for their moments. Error(usage) for options that make no sense; Error(oom).
  void add_group(std::span<const OptimizedParameter> parameters, const Options& options);
  void step(device::Stream stream);

  int groups() const { return static_cast<int>(groups_.size()); }
  std::size_t state_bytes() const;  // of all moments

  // A moment of the `number`-th trained parameter of a group, as one row.
  TensorView moment(OwnedUpdate::Moment moment, int group, int number) const;

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
