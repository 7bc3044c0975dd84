#include "device/buffer.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "device/allocator.hpp"
#include "device/cuda/cuda_error.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/graph_memory.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::device {

namespace {

void* allocate_on_host(std::size_t bytes, std::string_view tag) {
  void* data = nullptr;
  if (bytes <= std::numeric_limits<std::size_t>::max() - kAlignment) {
    const std::size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;  // aligned_alloc wants a multiple
    data = std::aligned_alloc(kAlignment, padded);
  }
  if (data == nullptr) {
    throw Error(ErrorKind::oom,
                fmt::format("could not allocate {} B for '{}' on the host ({} B are held by buffers already); "
                            "take a smaller problem or raise the memory limit",
                            bytes, tag, MemoryLog::global().live_bytes()),
                "aligned_alloc");
  }
  return data;
}

void* allocate_pinned(std::size_t bytes, std::string_view tag) {
  void* data = runtime::allocate_pinned(bytes);
  if (data == nullptr) {
    const MemoryUse host = memory_use({});
    throw_out_of_memory(bytes, tag, "the host, pinned", host.free, host.total, "cudaMallocHost");
  }
  return data;
}

}  // namespace

Buffer::Buffer(std::size_t bytes, std::string_view tag, MemoryLog& log) : bytes_(bytes), tag_(tag), log_(&log) {
  if (bytes_ == 0) return;
  data_ = allocate_on_host(bytes, tag);
  try {
    log_->record(static_cast<std::int64_t>(bytes_), tag_);
  } catch (...) {
    std::free(data_);
    throw;
  }
}

Buffer::Buffer(std::size_t bytes, std::string_view tag, Stream stream, MemoryCategory category)
    : bytes_(bytes), tag_(tag), category_(category), place_(place_of(stream)) {
  log_ = &MemoryLog::of(place_);
  if (bytes_ == 0) return;
  lender_ = GraphMemory::lent_to(stream, place_);
  if (place_.kind == Kind::cuda || lender_ != nullptr) {
    if (lender_ == nullptr && is_capturing(stream)) {
      throw NotCapturable(
          ErrorKind::device,
          fmt::format("could not take {} B for '{}' while its stream is captured: a replay would use the "
                      "memory after it was given back; lend the work its memory, or the capture a pool",
                      bytes, tag));
    }
    origin_ = Origin::allocator;
    data_ = allocator().allocate(bytes_, tag_, stream, category_);  // which keeps the account
    return;
  }
  data_ = allocate_on_host(bytes, tag);
  try {
    log_->record(static_cast<std::int64_t>(bytes_), tag_, category_);
  } catch (...) {
    std::free(data_);
    throw;
  }
}

Buffer Buffer::pinned(std::size_t bytes, std::string_view tag, Place place) {
  if (place.kind == Kind::cpu || bytes == 0) return {bytes, tag};
  const CurrentDevice current(place);
  Buffer buffer;
  buffer.tag_ = tag;
  buffer.log_ = &MemoryLog::global();
  buffer.origin_ = Origin::pinned;
  buffer.data_ = allocate_pinned(bytes, tag);
  buffer.bytes_ = bytes;
  buffer.log_->record(static_cast<std::int64_t>(bytes), tag);
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept { swap(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    swap(other);
  }
  return *this;
}

Buffer::~Buffer() { release(); }

void Buffer::swap(Buffer& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(tag_, other.tag_);
  std::swap(log_, other.log_);
  std::swap(category_, other.category_);
  std::swap(origin_, other.origin_);
  std::swap(place_, other.place_);
  std::swap(lender_, other.lender_);
}

CachingAllocator& Buffer::allocator() const { return lender_ != nullptr ? lender_->allocator_ : allocator_of(place_); }

void Buffer::used_on(Stream other) {
  if (data_ != nullptr && origin_ == Origin::allocator) allocator().used_on(data_, other);
}

void Buffer::release() noexcept {
  void* data = std::exchange(data_, nullptr);
  const std::size_t bytes = std::exchange(bytes_, 0);
  if (data == nullptr) return;
  if (origin_ == Origin::allocator) {
    allocator().release(data);
    lender_.reset();
    return;
  }
  if (origin_ == Origin::pinned) {
    runtime::release_pinned(data);
  } else {
    std::free(data);
  }
  try {
    log_->record(-static_cast<std::int64_t>(bytes), tag_, category_);
  } catch (...) {  // no memory for a log entry; the buffer itself has been freed
  }
}

}  // namespace syslab::device
