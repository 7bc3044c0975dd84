// A buffer divided once into slots that are reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/buffer.hpp"

namespace syslab::parallel {

class SlotPool {
 public:
  SlotPool() = default;
  // A slot for each of `room`, which are bytes. Every byte is set to `fill` in the order of `stream`. Error(oom).
  SlotPool(std::span<const std::int64_t> room, std::string_view tag, device::Stream stream, unsigned char fill = 0);

  int size() const { return static_cast<int>(first_.size()) - 1; }
  std::byte* operator[](int slot) const { return buffer_.as<std::byte>() + first_[static_cast<std::size_t>(slot)]; }
  std::int64_t bytes() const { return first_.back(); }

 private:
  std::vector<std::int64_t> first_{0};  // bytes; and the end
  device::Buffer buffer_;
};

}  // namespace syslab::parallel
