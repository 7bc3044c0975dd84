// The working memory of one kernel call, and its division into parts.
//
//   CallMemory memory(workspace, parts_bytes, "workspace", stream);
//   auto* scores = memory.take<float>(count);
//   auto* sums = memory.take<float>(rows);      // parts_bytes: part_bytes<float>(count) + part_bytes<float>(rows)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/integers.hpp"
#include "device/buffer.hpp"
#include "ops/rung.hpp"

namespace syslab::ops {

// Size of the part of `lent` that begins at a multiple of `alignment`; 0 if there is none.
inline std::size_t aligned_bytes(const Workspace& lent, std::size_t alignment) {
  if (lent.data == nullptr) return 0;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(lent.data) % alignment;
  const std::size_t skipped = past == 0 ? 0 : alignment - past;
  return lent.bytes > skipped ? lent.bytes - skipped : 0;
}

// `bytes` of the caller's workspace from a multiple of `alignment` on or, if it is too small, of memory allocated for
// the call. That fails while a graph is captured, and otherwise costs microseconds.
class CallMemory {
 public:
  // The widest load or store of a kernel is 16 bytes.
  static constexpr std::size_t kAlignment = 16;

  CallMemory(const Workspace& lent, std::size_t bytes, std::string_view tag, device::Stream stream = {},
             std::size_t alignment = kAlignment) {
    if (aligned_bytes(lent, alignment) < bytes) {
      own_ = device::Buffer(bytes, tag, stream, device::MemoryCategory::workspace);
      next_ = own_.as<std::byte>();
    } else if (bytes > 0) {
      next_ = static_cast<std::byte*>(lent.data) + (lent.bytes - aligned_bytes(lent, alignment));
    }
  }

  void* data() const { return next_; }  // of the part not yet taken

  // Parts are consecutive; each has the alignment of the first.
  template <typename T>
  T* take(std::int64_t count) {
    return reinterpret_cast<T*>(take_bytes(static_cast<std::size_t>(count) * sizeof(T)));
  }
  std::byte* take_bytes(std::size_t bytes) { return std::exchange(next_, next_ + part_bytes(bytes)); }

  // Bytes that a part occupies, rounded up to the alignment so that parts add up.
  static constexpr std::size_t part_bytes(std::size_t bytes) { return round_up(bytes, device::kAlignment); }

 private:
  device::Buffer own_;
  std::byte* next_ = nullptr;
};

}  // namespace syslab::ops
