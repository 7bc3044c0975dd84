// A second context of a GPU in this process, which stands for another process. A GPU runs the kernels of one context at
// a time, and takes a time of its own (140 µs on an H100) to go from one to another, longer where memory has been
// written. Handing over to this one and back measures what handing over to another process costs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/text/units.hpp"
#include "device/device.hpp"

namespace syslab::device {

class OtherContext {
 public:
  // A GPU, and how much memory the other context has there. Error(device), Error(oom), Unsupported.
  OtherContext(Place place, std::size_t bytes);
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;
  ~OtherContext();

  // Queues there: wait until *heard has reached `value`, run an empty kernel, then one that reads and writes `touched`
  // bytes between two marks of time, and write `value` to *answered. Both words lie in a MappedPage.
  void answer(const std::uint32_t* heard, std::uint32_t* answered, std::uint32_t value, std::size_t touched);
  // Waits: between the marks of the last answer.
  Nanoseconds took() const;

 private:
  void close() noexcept;

  void* context_ = nullptr;
  void* stream_ = nullptr;
  void* memory_ = nullptr;
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

// Queues an empty kernel: what is queued behind it, marks of time too, comes when the GPU runs this process's context.
// A first time in a process waits for the stream. On the CPU nothing.
void come_to_turn(Stream stream);

}  // namespace syslab::device
