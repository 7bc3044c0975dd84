#include "ops/foreign.hpp"

#include "core/refusal.hpp"

namespace syslab::ops {

ForeignCall& ForeignCall::whole_numbers(std::string_view name, const std::int64_t* values, std::int64_t count) {
  inputs_.push_back({name, ConstTensorView(values, DType::f64, {count})});
  const std::string option(kWholeNumbersOption);
  options_.set(option, options_.has(option) ? options_.text(option) + "," + std::string(name) : std::string(name));
  return *this;
}

void ForeignCall::run() {
  try {
    channel_.call(function_, inputs_, outputs_, options_);
  } catch (const Refusal& refusal) {
    throw Error(ErrorKind::check, refusal.what(), std::string(function_));
  }
}

Operation timed_elsewhere(Operation made, const std::shared_ptr<TimedChannel>& channel) {
  made.call = [channel, call = std::move(made.call)](const Inputs& in, const Outputs& out, device::Stream stream) {
    channel->begin();
    call(in, out, stream);
  };
  made.self_time = [channel] { return channel->taken(); };
  return made;
}

}  // namespace syslab::ops
