#include "device/stream.hpp"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "device/cuda/cublas_engine.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/host_queue.hpp"
#include "device/queue.hpp"

namespace syslab::device {

std::string to_string(Place place) {
  return place.kind == Kind::cpu ? std::string("the CPU") : fmt::format("GPU {}", place.index);
}

bool built_with_cuda() { return runtime::present(); }

int gpu_count() noexcept { return runtime::device_count(); }

CurrentDevice::CurrentDevice(Place place) {
  if (place.kind == Kind::cpu) return;
  const int now = runtime::current();
  if (now == place.index) return;
  runtime::make_current(place.index);
  before_ = now;
}

CurrentDevice::CurrentDevice(Stream stream) : CurrentDevice(place_of(stream)) {}

CurrentDevice::~CurrentDevice() {
  if (before_ < 0) return;
  try {
    runtime::make_current(before_);
  } catch (...) {  // it was current before; the next call on it reports the fault
  }
}

OwnedStream::OwnedStream(Place place) : place_(place) {
  if (place.kind == Kind::cpu) return;
  const CurrentDevice current(place);
  stream_ = {Kind::cuda, runtime::create_stream()};
}

OwnedStream OwnedStream::urgent(Place place) {
  OwnedStream made;
  made.place_ = place;
  if (place.kind == Kind::cpu) return made;
  const CurrentDevice current(place);
  made.stream_ = {Kind::cuda, runtime::create_stream(true)};
  return made;
}

OwnedStream OwnedStream::queue() {
  OwnedStream made;
  made.stream_ = {Kind::cpu, create_host_queue()};
  return made;
}

OwnedStream::OwnedStream(OwnedStream&& other) noexcept
    : stream_(std::exchange(other.stream_, {})), place_(std::exchange(other.place_, {})) {}

OwnedStream& OwnedStream::operator=(OwnedStream&& other) noexcept {
  std::swap(stream_, other.stream_);
  std::swap(place_, other.place_);
  return *this;
}

OwnedStream::~OwnedStream() {
  if (stream_.handle == nullptr) return;
  if (is_queue(stream_)) {
    destroy_host_queue(stream_.handle);
  } else {
    forget_engines(place_, stream_);
    runtime::destroy_stream(stream_.handle);
  }
}

Place place_of(Stream stream) {
  if (stream.kind == Kind::cpu) return {};
  return {Kind::cuda, runtime::stream_device(stream.handle)};
}

bool is_capturing(Stream stream) { return stream.kind == Kind::cuda && runtime::stream_capturing(stream.handle); }

bool is_idle(Stream stream) {
  if (stream.kind == Kind::cuda) return runtime::stream_done(stream.handle);
  return !is_queue(stream) || host_queue(stream)->idle();
}

void synchronize(Stream stream) {
  if (stream.kind == Kind::cuda) return runtime::synchronize_stream(stream.handle);
  if (is_queue(stream)) host_queue(stream)->synchronize();
}

void synchronize(Place place) {
  if (place.kind == Kind::cpu) return synchronize_host_queues();
  const CurrentDevice current(place);
  runtime::synchronize_device();
}

void await_queue(Stream stream) noexcept {
  if (!is_queue(stream)) return;
  const std::shared_ptr<HostQueue> queue = host_queue_or_end(stream);
  try {
    queue->wait();
  } catch (...) {  // called from the queue's own work: nothing is queued after it
  }
}

void enqueue(Stream stream, std::function<void()> work) {
  if (stream.kind == Kind::cuda) {
    throw Error(ErrorKind::internal, "work of the host cannot be put on a stream of a GPU");
  }
  if (is_queue(stream)) return host_queue(stream)->push(std::move(work));
  work();
}

std::string failure_of(Stream stream) {
  const std::exception_ptr failure = is_queue(stream) ? host_queue(stream)->failure() : nullptr;
  if (failure == nullptr) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "what is no std::exception";
  }
}

void expect_plain(Stream stream, std::string_view work) {
  if (!is_queue(stream)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} runs at once on the CPU and was given a queue of it, whose order it would "
                          "not keep: give it the plain stream, inside enqueue()",
                          work));
}

}  // namespace syslab::device
