#include "worker/served_gpu.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "device/gpu_probe.hpp"
#include "device/launch.hpp"
#include "device/memory.hpp"
#include "device/other_context.hpp"
#include "worker/shared_segment.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kStep = 0, kDone = 16;  // words of 32 bits (docs/worker-wire.md)

device::Place demanded(device::Place place) {
  if (place.kind == device::Kind::cuda && device::gpu_count() <= place.index) {
    throw Unsupported("needs a GPU: " + device::probe_gpus().why_none);
  }
  return place;
}

}  // namespace

ServedGpu::ServedGpu(device::Place place)
    : place_(demanded(place)), device_(place_), begin_(place_, device::Timing::yes), end_(place_, device::Timing::yes) {
  device::come_to_turn(stream());  // a first time waits for the stream
  device::synchronize(stream());
}

void ServedGpu::share(std::byte* words) {
  if (place_.kind == device::Kind::cuda) page_ = std::make_unique<device::MappedPage>(words);
  words_ = reinterpret_cast<std::uint32_t*>(words);
}

std::byte* ServedGpu::memory(const std::string& handle) {
  if (handle != handle_) {
    view_.reset();
    view_ = std::make_unique<device::PeerView>(handle, place_);
    handle_ = handle;
  }
  return view_->at(0);
}

Nanoseconds ServedGpu::run(std::uint32_t step, const std::function<void()>& body, const std::function<void()>& queued) {
  device::await_mark(word(kStep), step + 1, stream());
  device::come_to_turn(stream());
  begin_.record(stream());
  body();
  end_.record(stream());
  device::raise_mark(word(kDone), step + 1, stream());
  queued();
  device::synchronize(stream());
  wait(step + 2);
  return device::elapsed(begin_, end_);
}

// By the host, not by the stream.
void ServedGpu::wait(std::uint32_t step) const {
  constexpr std::chrono::microseconds kSpin{2000}, kNap{20};
  const auto spin_until = std::chrono::steady_clock::now() + kSpin;
  const std::atomic_ref seen(*word(kStep));
  while (static_cast<std::int32_t>(seen.load(std::memory_order_acquire) - step) < 0) {
    if (std::chrono::steady_clock::now() > spin_until) std::this_thread::sleep_for(kNap);
  }
}

std::byte* ServedGpu::copied(const std::byte* memory, std::size_t bytes) {
  if (copy_.bytes() < bytes) copy_ = device::Buffer(bytes, "tensors of a call", stream());
  device::copy_now(copy_.data(), memory, bytes, stream());
  return copy_.as<std::byte>();
}

Nanoseconds ServedGpu::run(const CallRequest& request, const std::function<void()>& body, std::byte* memory) {
  Nanoseconds took{};
  const auto has_elements = [](const SharedTensor& one) { return one.shape.elements() > 0; };
  if (std::ranges::any_of(request.outputs, has_elements)) {
    device_.queue_window(body);
    took = device_.collect().front().elapsed;
  } else {  // it may have nothing to queue
    body();
    device_.synchronize();
  }
  const auto copy_back = [&](std::size_t first, std::size_t bytes) {
    if (bytes > 0) device::copy_now(memory + first, copy_.as<std::byte>() + first, bytes, stream());
  };
  for (const SharedTensor& one : request.inputs) copy_back(one.offset, extent_bytes(one));
  for (const SharedTensor& one : request.outputs) {
    copy_back(one.offset - kGuardBytes, extent_bytes(one) + 2 * kGuardBytes);
  }
  return took;
}

}  // namespace syslab::worker
