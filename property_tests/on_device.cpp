#include "property_tests/on_device.hpp"

#include "device/launch.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::property {
namespace {

// One for all calls of the process: a law makes thousands.
device::Stream gpu_stream() {
  static const device::OwnedStream stream(device::Place{device::Kind::cuda, 0});
  return stream.view();
}

}  // namespace

std::optional<std::string> OnDevice::refusal(device::Kind kind) {
  if (kind == device::Kind::cpu) return std::nullopt;
  static const bool none = device::gpu_count() == 0;
  if (!none) return std::nullopt;
  return "runs on a GPU, and there is none that this process can use";
}

OnDevice::OnDevice(device::Kind kind) : stream_(kind == device::Kind::cuda ? gpu_stream() : device::Stream{}) {}

TensorView OnDevice::view(const check::GuardedTensor& tensor) {
  TensorView view = tensor.view();
  if (stream_.kind == device::Kind::cpu) return view;
  Mirror mirror{tensor.memory(), device::Buffer(tensor.memory_bytes(), tensor.spec().name, stream_)};
  device::copy(mirror.there.data(), mirror.host, mirror.there.bytes(), stream_);
  view.data = mirror.there.as<std::byte>() + tensor.offset();
  mirrors_.push_back(std::move(mirror));
  return view;
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
