#include "device/peer_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "device/buffer.hpp"
#include "device/cuda/cuda_error.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/memory.hpp"
#include "device/memory_log.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

using namespace std::chrono_literals;

// Of the CPU: a process and an address in it. Of a GPU: the driver's bytes in hexadecimal.
constexpr std::string_view kHost = "host:", kGpu = "gpu:";

std::string hexadecimal(const runtime::SharedHandle& handle) {
  std::string text;
  for (const unsigned char byte : handle.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

[[noreturn]] void refuse(const std::string& handle) {
  throw Error(ErrorKind::usage, fmt::format("'{}' is no handle of memory that another rank may reach", handle));
}

runtime::SharedHandle parsed(const std::string& handle) {
  runtime::SharedHandle made;
  const std::string_view digits = std::string_view(handle).substr(kGpu.size());
  if (digits.size() != 2 * sizeof made.bytes) refuse(handle);
  for (std::size_t i = 0; i < sizeof made.bytes; ++i) {
    const char* const first = digits.data() + 2 * i;
    if (std::from_chars(first, first + 2, made.bytes[i], 16).ptr != first + 2) refuse(handle);
  }
  return made;
}

std::byte* in_this_process(const std::string& handle) {
  unsigned long long process = 0, address = 0;
  const char* const end = handle.data() + handle.size();
  const auto [colon, wrong] = std::from_chars(handle.data() + kHost.size(), end, process);
  if (wrong != std::errc{} || colon == end || std::from_chars(colon + 1, end, address).ptr != end) refuse(handle);
  if (process != static_cast<unsigned long long>(::getpid())) {
    throw Unsupported("ranks of the CPU that copy from each other's memory are threads of one process: ask for shm");
  }
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));  // NOLINT: it was one
}

bool has_come(std::uint32_t mark, std::uint32_t value) { return static_cast<std::int32_t>(mark - value) >= 0; }

}  // namespace

PeerMemory::PeerMemory(std::size_t bytes, std::string_view tag, Place place) : bytes_(bytes), tag_(tag), place_(place) {
  if (place.kind == Kind::cpu) {
    data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
    std::memset(data_, 0, bytes);
  } else {
    // Not from the segment allocator: memory reached from outside must not be reused by others.
    const CurrentDevice current(place);
    data_ = static_cast<std::byte*>(runtime::allocate(bytes));
    if (data_ == nullptr) {
      const MemoryUse use = memory_use(place);
      throw_out_of_memory(bytes, tag, to_string(place), use.free, use.total, "cudaMalloc");
    }
    const OwnedStream stream(place);
    device::fill_bytes(data_, 0, bytes, stream);
    device::synchronize(stream.view());
  }
  MemoryLog::of(place).record(static_cast<std::int64_t>(bytes), tag, MemoryCategory::workspace);
}

PeerMemory::~PeerMemory() {
  if (place_.kind == Kind::cpu) {
    ::operator delete (data_, std::align_val_t{kAlignment});
  } else {
    runtime::release(data_);
  }
  MemoryLog::of(place_).record(-static_cast<std::int64_t>(bytes_), tag_, MemoryCategory::workspace);
}

std::string PeerMemory::handle() const {
  if (place_.kind == Kind::cpu) {
    return fmt::format("{}{}:{}", kHost, ::getpid(), reinterpret_cast<std::uintptr_t>(data_));
  }
  const CurrentDevice current(place_);
  return std::string(kGpu) + hexadecimal(runtime::share(data_));
}

PeerView::PeerView(const std::string& handle, Place place) : place_(place) {
  if (place.kind == Kind::cpu && handle.starts_with(kHost)) {
    data_ = in_this_process(handle);
  } else if (place.kind == Kind::cuda && handle.starts_with(kGpu)) {
    const CurrentDevice current(place);
    data_ = static_cast<std::byte*>(runtime::open_shared(parsed(handle)));
  } else {
    refuse(handle);
  }
}

PeerView::PeerView(PeerView&& other) noexcept : data_(std::exchange(other.data_, nullptr)), place_(other.place_) {}

PeerView::~PeerView() {
  if (place_.kind == Kind::cpu || data_ == nullptr) return;
  try {
    const CurrentDevice current(place_);  // mappings belong to a GPU
    runtime::close_shared(data_);
  } catch (const std::exception&) {  // a GPU that is lost has no mappings
  }
}

std::size_t PeerView::gpu_bytes() const {
  const CurrentDevice current(place_);
  return runtime::shared_bytes(data_);
}

void raise_mark(std::uint32_t* mark, std::uint32_t value, Stream stream) {
  if (stream.kind == Kind::cuda) return runtime::write_word(stream.handle, mark, value);
  enqueue(stream, [mark, value] { std::atomic_ref(*mark).store(value, std::memory_order_release); });
}

void await_mark(const std::uint32_t* mark, std::uint32_t value, Stream stream) {
  if (stream.kind == Kind::cuda) return runtime::await_word(stream.handle, mark, value);
  enqueue(stream, [word = const_cast<std::uint32_t*>(mark), value] {  // atomic_ref wants no const; nothing is written
    const std::atomic_ref seen(*word);
    for (int tries = 0; !has_come(seen.load(std::memory_order_acquire), value); ++tries) {
      tries < 100 ? std::this_thread::yield() : std::this_thread::sleep_for(50us);
    }
  });
}

}  // namespace syslab::device
