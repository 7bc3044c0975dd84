#include "device/memory.hpp"

#include <unistd.h>

#include <cstring>

#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"

namespace syslab::device {

void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  if (stream.kind == Kind::cpu && stream.handle == nullptr) {
    std::memcpy(to, from, bytes);
  } else if (stream.kind == Kind::cpu) {
    enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  } else {
    runtime::copy(to, from, bytes, stream.handle);
  }
}

void copy_now(void* to, const void* from, std::size_t bytes, Stream stream) {
  copy(to, from, bytes, stream);
  synchronize(stream);
}

void fill_bytes(void* at, int value, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  if (stream.kind == Kind::cpu && stream.handle == nullptr) {
    std::memset(at, value, bytes);
  } else if (stream.kind == Kind::cpu) {
    enqueue(stream, [=] { std::memset(at, value, bytes); });
  } else {
    const CurrentDevice current(stream);
    runtime::fill_bytes(at, value, bytes, stream.handle);
  }
}

PointerInfo pointer_info(const void* data) {
  if (data == nullptr) return {};
  const runtime::Pointer found = runtime::pointer(data);
  return {.place = found.place, .pinned = found.pinned, .managed = found.managed};
}

MemoryUse memory_use(Place place) {
  MemoryUse use;
  if (place.kind == Kind::cuda) {
    const CurrentDevice current(place);
    runtime::memory_use(use.free, use.total);
    return use;
  }
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  use.free = page * static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES));
  use.total = page * static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  return use;
}

}  // namespace syslab::device
