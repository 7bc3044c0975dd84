// Pieces of memory with addresses behind each at which nothing is mapped: who reads or writes past the end of one is
// stopped by the machine, on the CPU by a signal and on a GPU by an error of the kernel.
//
//   FencedMemory pieces(place, 9, bytes);
//   std::byte* at = pieces.end_of(i) - size;
#pragma once

#include <cstddef>

#include "device/device.hpp"

namespace syslab::device {

class FencedMemory {
 public:
  FencedMemory() = default;  // none
  // `count` pieces of at least `bytes` each. Unsupported where the driver maps no memory at addresses of choice,
  // Error(oom) where there is no room.
  FencedMemory(Place place, int count, std::size_t bytes);
  FencedMemory(FencedMemory&& other) noexcept;
  FencedMemory& operator=(FencedMemory&& other) noexcept;
  ~FencedMemory();

  std::byte* data() const { return static_cast<std::byte*>(mapped_.data); }
  std::byte* begin_of(int piece) const { return data() + static_cast<std::size_t>(piece) * mapped_.stride; }
  std::byte* end_of(int piece) const { return begin_of(piece) + mapped_.piece; }
  int count() const { return mapped_.count; }
  std::size_t piece() const { return mapped_.piece; }  // bytes

  struct Mapped {
    void* data = nullptr;
    std::size_t piece = 0, stride = 0;
    int count = 0;
  };

 private:
  void free() noexcept;

  Place place_;
  Mapped mapped_;
};

}  // namespace syslab::device
