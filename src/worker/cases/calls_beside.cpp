#include "worker/cases/calls_beside.hpp"

#include <algorithm>

#include "device/memory.hpp"
#include "worker/judged/shared_segment.hpp"

namespace syslab::worker {
namespace {

constexpr int kRounds = 4;  // so that calls overlap wherever their kernels begin

// Other values of the same kind in the same places: of a tensor whose rows have gaps, gaps become gaps.
void reverse(const SharedTensor& tensor, std::byte* memory) {
  const std::size_t width = size_of(tensor.dtype);
  std::byte* const first = memory + tensor.offset;
  for (std::size_t from = 0, to = extent_bytes(tensor); from + 2 * width <= to; from += width) {
    to -= width;
    std::swap_ranges(first + from, first + from + width, first + to);
  }
}

}  // namespace

TensorsOfCall tensors_of(const CallRequest& request, std::byte* memory) {
  TensorsOfCall made;
  for (const SharedTensor& one : request.inputs) {
    made.inputs.push_back({one.name, {memory + one.offset, one.dtype, one.shape, one.strides}});
  }
  for (const SharedTensor& one : request.outputs) {
    made.outputs.push_back({one.name, {memory + one.offset, one.dtype, one.shape, one.strides}});
  }
  return made;
}

CallsBeside::Other::Other(const OpenCallee& open, device::Place place)
    : stream(place), gate(stream.view()), callee(open(stream.view())) {}

void CallsBeside::queue_with(const CallRequest& request, const std::byte* tensors, int streams, device::Stream own,
                             const std::function<void()>& body) {
  if (!own_gate_) own_gate_ = std::make_unique<device::Gate>(own);
  while (static_cast<int>(others_.size()) + 1 < streams) {
    others_.push_back(std::make_unique<Other>(open_, device::place_of(own)));
  }
  std::vector<std::byte> reversed(tensors, tensors + request.memory_bytes);
  for (const SharedTensor& one : request.inputs) reverse(one, reversed.data());
  std::vector<std::function<void()>> bodies;
  for (const auto& other : others_) {
    const device::Stream stream = other->stream.view();
    if (other->copy.bytes() < reversed.size()) {
      other->copy = {};
      other->copy = device::Buffer(reversed.size(), "tensors of another call", stream);
    }
    device::copy_now(other->copy.data(), reversed.data(), reversed.size(), stream);
    const TensorsOfCall there = tensors_of(request, other->copy.as<std::byte>());
    bodies.push_back(other->callee->prepare(request.function, there.inputs, there.outputs, request.options));
  }
  struct Opener {
    CallsBeside& all;
    ~Opener() {  // also when a call throws
      for (const auto& other : all.others_) other->gate.open();
      all.own_gate_->open();
    }
  };
  const auto call_others = [&] {
    for (const auto& other : bodies) other();
  };
  {
    const Opener opener{*this};
    for (const auto& other : others_) other->gate.close();
    own_gate_->close();
    for (int round = 0; round < kRounds; ++round) {
      call_others();
      body();
    }
    call_others();
  }
  for (const auto& other : others_) device::synchronize(other->stream.view());
  device::synchronize(own);
}

}  // namespace syslab::worker
