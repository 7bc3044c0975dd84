#include "parallel/grouped_adamw.hpp"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "device/memory.hpp"

namespace syslab::parallel {

std::string GroupedAdamW::text_of(const Options& options) {
  return fmt::format("AdamW, lr {:a}, betas {:a} {:a}, eps {:a} {}, decay {:a} {}", options.lr, options.beta1,
                     options.beta2, options.eps,
                     options.eps_mode == adamw::EpsMode::corrected ? "corrected" : "uncorrected", options.weight_decay,
                     options.decay_order == adamw::DecayOrder::before ? "before" : "after");
}

void GroupedAdamW::add_group(std::span<const OptimizedParameter> parameters, const Options& options) {
  static_cast<void>(adamw::scalars_of(options, 1));  // throws for options out of range
  std::vector<OwnedStretch> stretches;
  for (const OptimizedParameter& one : parameters) {
    if (!one.frozen()) stretches.push_back({one.weight, one.gradient});
  }
  const device::Place place = device::place_of(stream_);
  groups_.push_back(
      {.options = options,
       .update = OwnedUpdate(std::move(stretches), *rung_, stream_),
       .numbers = device::Buffer(sizeof(adamw::Scalars), "step_numbers", stream_, device::MemoryCategory::workspace),
       .staged = device::Buffer::pinned(sizeof(adamw::Scalars), "step_numbers", place),
       .copied = device::Event(place),
       .awaits = device::AwaitsQueues(stream_)});
}

void GroupedAdamW::step(device::Stream stream) {
  for (Group& group : groups_) {
    ++group.steps;
    if (group.update.elements() == 0) continue;
    group.copied.synchronize();  // the previous step has copied its numbers out of the staging memory
    new (group.staged.data()) adamw::Scalars(adamw::scalars_of(group.options, group.steps));
    device::copy(group.numbers.data(), group.staged.data(), sizeof(adamw::Scalars), stream);
    group.copied.record(stream);
    group.update.queue(static_cast<const adamw::Scalars*>(group.numbers.data()), nullptr, nullptr, stream);
  }
}

TensorView GroupedAdamW::moment(OwnedUpdate::Moment moment, int group, int number) const {
  return groups_[static_cast<std::size_t>(group)].update.moment(moment, number);
}

std::size_t GroupedAdamW::state_bytes() const {
  std::size_t bytes = 0;
  for (const Group& group : groups_) bytes += group.update.bytes();
  return bytes;
}

}  // namespace syslab::parallel
