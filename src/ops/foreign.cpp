#include "ops/foreign.hpp"

#include "core/refusal.hpp"
#include "device/buffer.hpp"

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

Operation seen_beside(Operation made, const Operation& ours) {
  if (made.device != device::Kind::cpu || ours.device != device::Kind::cpu) return made;
  struct Memory {
    std::vector<device::Buffer> buffers;
    Outputs outputs;
  };
  const auto memory = std::make_shared<Memory>();
  made.glimpse = [memory, specs = made.outputs, call = ours.call](const Inputs& in, const Outputs&, std::uint64_t) {
    if (memory->outputs.empty()) {
      for (const TensorSpec& spec : specs) {
        memory->buffers.emplace_back(spec.bytes(), spec.name);
        memory->outputs.emplace_back(memory->buffers.back().data(), spec.dtype, spec.shape);
      }
    }
    call(in, memory->outputs, {});
    std::vector<Glimpse> glimpses;
    for (std::size_t i = 0; i < specs.size(); ++i) glimpses.push_back({i, 0, to_doubles(memory->outputs[i])});
    return glimpses;
  };
  return made;
}

}  // namespace syslab::ops
