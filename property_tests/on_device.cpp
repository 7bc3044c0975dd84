#include "property_tests/on_device.hpp"

#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::property {
namespace {

// For all calls of the process: a law makes thousands.
device::Stream gpu_stream(int lane) {
  static const std::vector<device::OwnedStream> streams = [] {
    std::vector<device::OwnedStream> made;
    for (int i = 0; i < OnDevice::kLanes; ++i) made.emplace_back(device::Place{device::Kind::cuda, 0});
    return made;
  }();
  return streams[static_cast<std::size_t>(lane % OnDevice::kLanes)].view();
}

}  // namespace

std::optional<std::string> OnDevice::refusal(device::Kind kind) {
  if (kind == device::Kind::cpu) return std::nullopt;
  static const bool none = device::gpu_count() == 0;
  if (!none) return std::nullopt;
  return "runs on a GPU, and there is none that this process can use";
}

OnDevice::OnDevice(device::Kind kind, int lane)
    : stream_(kind == device::Kind::cuda ? gpu_stream(lane) : device::Stream{}) {}

TensorView OnDevice::view(const check::GuardedTensor& tensor) {
  TensorView view = tensor.view();
  if (stream_.kind == device::Kind::cpu) return view;
  Mirror mirror{tensor.memory(), device::Buffer(tensor.memory_bytes(), tensor.spec().name, stream_)};
  device::copy(mirror.there.data(), mirror.host, mirror.there.bytes(), stream_);
  view.data = mirror.there.as<std::byte>() + tensor.offset();
  mirrors_.push_back(std::move(mirror));
  return view;
}

void OnDevice::await_inputs() const {
  if (stream_.kind != device::Kind::cpu) device::synchronize(stream_);
}

void OnDevice::finish() {
  if (stream_.kind == device::Kind::cpu) return;
  device::synchronize(device::place_of(stream_));
  for (const Mirror& mirror : mirrors_) {
    device::copy(mirror.host, mirror.there.data(), mirror.there.bytes(), stream_);
  }
  device::synchronize(stream_);
  mirrors_.clear();
}

}  // namespace syslab::property
