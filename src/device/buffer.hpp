// Memory with an owner and an account, on the host or on a GPU.
//
//   Buffer host(bytes, "scores");
//   Buffer there(bytes, "scores", stream);                        // where the stream's work runs, the CPU included
//   Buffer staged = Buffer::pinned(bytes, "staging", {Kind::cuda, 0});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "device/device.hpp"
#include "device/memory_log.hpp"

namespace syslab::device {

class CachingAllocator;
class GraphMemory;

inline constexpr std::size_t kAlignment = 128;

// Bytes aligned to kAlignment at least, uninitialised. Move-only. Throws Error(oom) with the bytes asked and available.
// GPU memory comes from a caching allocator (device/allocator.hpp) and is ordered by its stream: work queued on that
// stream from now on may use it, and destroying the buffer frees it for work queued there later, so no wait is needed
// first. Work on any other stream must be announced by used_on(). While the stream is being captured, memory comes from
// the pool lent to the capture (device/cuda/graph_memory.hpp) and remains the pool's; NotCapturable if there is none.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t bytes, std::string_view tag, MemoryLog& log = MemoryLog::global());  // on the host
  Buffer(std::size_t bytes, std::string_view tag, Stream stream, MemoryCategory category = MemoryCategory::other);
  // Pinned host memory for asynchronous copies to and from a GPU; ordinary memory if `place` is the CPU.
  static Buffer pinned(std::size_t bytes, std::string_view tag, Place place);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // Work queued on `other` so far uses this memory: it is not reused before that work completes.
  void used_on(Stream other);

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Place place() const { return place_; }  // the CPU's too when pinned
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  enum class Origin { host, pinned, allocator };
  void swap(Buffer& other) noexcept;
  void release() noexcept;
  CachingAllocator& allocator() const;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::string tag_;
  MemoryLog* log_ = nullptr;
  MemoryCategory category_ = MemoryCategory::other;
  Origin origin_ = Origin::host;
  Place place_;
  std::shared_ptr<GraphMemory> lender_;  // keeps memory used by graphs; null: the device's allocator
};

}  // namespace syslab::device
