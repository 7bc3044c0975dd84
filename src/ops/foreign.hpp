// What the rungs of all operators share that live in another process: how a call is told there by name.
//
// A call is "<operator>_<what>" with named tensors in, named tensors out and named numbers. Tensors without memory are
// left out. An output is written whole: nothing is added to what stood there.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/operation.hpp"
#include "core/call_channel.hpp"
#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::ops {

// Who it is. `dtypes` is what the author declared.
struct ForeignImplementation {
  std::string name, language, digest;
  std::vector<DType> dtypes = {DType::f32};
  std::shared_ptr<CallChannel> channel;
};

template <typename Rung>
Rung foreign_rung_of(const ForeignImplementation& mine) {
  Rung rung;
  rung.name = mine.name;
  rung.teaches = "an implementation in another process";
  rung.dtypes = mine.dtypes;
  rung.deterministic = false;  // it promises nothing
  rung.language = mine.language;
  rung.digest = mine.digest;
  return rung;
}

// One call, put together and made: ForeignCall(channel, "swiglu_forward").in("gate", …).out("out", …).run().
class ForeignCall {
 public:
  ForeignCall(const std::shared_ptr<CallChannel>& channel, std::string_view function)
      : channel_(*channel), function_(function) {}

  ForeignCall& in(std::string_view name, const ConstTensorView& view) {
    if (view.data != nullptr) inputs_.push_back({name, view});
    return *this;
  }
  // 64-bit whole numbers, which travel as the bits of as many fp64 elements.
  ForeignCall& whole_numbers(std::string_view name, const std::int64_t* values, std::int64_t count);
  ForeignCall& out(std::string_view name, const TensorView& view) {
    if (view.data != nullptr) outputs_.push_back({name, view});
    return *this;
  }
  ForeignCall& number(std::string name, Value value) {
    options_.set(std::move(name), std::move(value));
    return *this;
  }

  // What it raises is Error(check): no law asks for a refusal. Unsupported where it has no such function, or says that
  // it does not take such tensors.
  void run();

 private:
  CallChannel& channel_;
  std::string_view function_;
  std::vector<NamedInput> inputs_;
  std::vector<NamedOutput> outputs_;
  Params options_;
};

// Sums up how long the calls through it took, by the clock of the process that is called.
class TimedChannel : public CallChannel {
 public:
  explicit TimedChannel(std::shared_ptr<CallChannel> channel) : channel_(std::move(channel)) {}

  Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params& options) override {
    const Nanoseconds took = channel_->call(function, inputs, outputs, options);
    taken_ += took;
    return took;
  }
  void begin() { taken_ = {}; }
  Nanoseconds taken() const { return taken_; }

 private:
  std::shared_ptr<CallChannel> channel_;
  Nanoseconds taken_{};
};

// The operation, each call timed by what goes through the channel of its rung.
Operation timed_elsewhere(Operation made, const std::shared_ptr<TimedChannel>& channel);

// The operation, each of whose timed calls is looked at beside the same by a rung of ours, of the same inputs and
// outputs. Both on the host; else as it was.
Operation seen_beside(Operation made, const Operation& ours);

// Names of a call's tensors that hold whole numbers, joined by commas: an option of this name.
inline constexpr std::string_view kWholeNumbersOption = "whole_numbers";

}  // namespace syslab::ops
