// Memory of one device that other ranks on the host can access directly, with marks in it that order the accesses: what
// copy engines need to move data between GPUs without a kernel.
//
//   PeerMemory mine(bytes, "inbox", place);               // send its handle to the other ranks
//   const PeerView theirs(handle_of_another, place);
//   copy(theirs.at(0), buffer, bytes, stream);
//   raise_mark(theirs.mark(at), 7, stream);               // there: await_mark(mine.mark(at), 7, stream)
//
// On GPUs ranks are processes and views are mappings (cudaIpc…); copies between two GPUs are done by copy engines, and
// marks are written and waited for by the streams' own front ends, so that no multiprocessor is used. On the CPU ranks
// are threads of one process and a view is the memory itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/device.hpp"

namespace syslab::device {

// Initially zero. Must outlive every view of it.
class PeerMemory {
 public:
  PeerMemory(std::size_t bytes, std::string_view tag, Place place);  // Error(oom)
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  ~PeerMemory();

  std::byte* at(std::size_t offset) const { return data_ + offset; }
  std::uint32_t* mark(std::size_t offset) const { return reinterpret_cast<std::uint32_t*>(data_ + offset); }
  // A short text without spaces, for PeerView in any process of this host. Error(device) if the driver provides none.
  std::string handle() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
  std::string tag_;
  Place place_;
};

class PeerView {
 public:
  // Maps it for `place`. Unsupported if it cannot be reached: no link between the two GPUs, or (on the CPU) memory of
  // another process. Error(usage) if the text is not a handle.
  PeerView(const std::string& handle, Place place);
  PeerView(PeerView&& other) noexcept;
  PeerView& operator=(PeerView&&) = delete;
  ~PeerView();

  std::byte* at(std::size_t offset) const { return data_ + offset; }
  std::uint32_t* mark(std::size_t offset) const { return reinterpret_cast<std::uint32_t*>(data_ + offset); }
  std::size_t gpu_bytes() const;  // of the allocation on a GPU that it is the beginning of

 private:
  std::byte* data_ = nullptr;
  Place place_;
};

// Writes `value` once all work queued on `stream` before has completed and is visible to anyone who sees the value.
void raise_mark(std::uint32_t* mark, std::uint32_t value, Stream stream);
// Work queued on `stream` from now on waits until the mark, which is in this device's own memory, has reached `value`;
// compared modulo 2^32, so it may wrap around. The host waits only on the CPU's plain stream.
void await_mark(const std::uint32_t* mark, std::uint32_t value, Stream stream);

}  // namespace syslab::device
