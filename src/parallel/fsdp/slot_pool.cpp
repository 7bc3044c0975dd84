#include "parallel/fsdp/slot_pool.hpp"

#include "device/memory.hpp"

namespace syslab::parallel {

SlotPool::SlotPool(std::span<const std::int64_t> room, std::string_view tag, device::Stream stream,
                   unsigned char fill) {
  for (const std::int64_t bytes : room) first_.push_back(first_.back() + bytes);
  buffer_ = device::Buffer(static_cast<std::size_t>(bytes()), tag, stream, device::MemoryCategory::workspace);
  device::fill_bytes(buffer_.data(), fill, buffer_.bytes(), stream);
}

}  // namespace syslab::parallel
