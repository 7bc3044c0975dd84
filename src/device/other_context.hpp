// A second context of a GPU in this process, which does nothing. A GPU runs the kernels of one context at a time, and
// takes a time of its own (140 µs on an H100) to go from one to another. Handing over to this one and back measures
// what handing over to another process costs.
#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace syslab::device {

class OtherContext {
 public:
  explicit OtherContext(Place place);  // a GPU. Error(device), Unsupported
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;
  ~OtherContext();

  // Queues there: wait until *heard has reached `value`, run an empty kernel, write `value` to *answered. Both words
  // lie in a MappedPage.
  void answer(const std::uint32_t* heard, std::uint32_t* answered, std::uint32_t value);

 private:
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

// Queues an empty kernel: what is queued behind it, marks of time too, comes when the GPU runs this process's context.
// A first time in a process waits for the stream. On the CPU nothing.
void come_to_turn(Stream stream);

}  // namespace syslab::device
