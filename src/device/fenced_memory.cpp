#include "device/fenced_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"

namespace syslab::device {
namespace {

FencedMemory::Mapped mapped_on_host(int count, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  FencedMemory::Mapped made{.data = nullptr, .piece = round_up(bytes, page), .stride = 0, .count = count};
  made.stride = made.piece + page;
  void* const data = ::mmap(nullptr, made.stride * static_cast<std::size_t>(count), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw_errno(ErrorKind::oom, fmt::format("map {} pieces of memory", count), errno, "mmap");
  made.data = data;
  for (int i = 0; i < count; ++i) {
    auto* const fence = static_cast<std::byte*>(data) + static_cast<std::size_t>(i) * made.stride + made.piece;
    if (::mprotect(fence, page, PROT_NONE) != 0) {
      const int error = errno;
      ::munmap(data, made.stride * static_cast<std::size_t>(count));
      throw_errno(ErrorKind::oom, "take a page away", error, "mprotect");
    }
  }
  return made;
}

}  // namespace

FencedMemory::FencedMemory(Place place, int count, std::size_t bytes) : place_(place) {
  if (place.kind == Kind::cpu) {
    mapped_ = mapped_on_host(count, bytes);
  } else {
    const CurrentDevice current(place);
    mapped_ = runtime::map_fenced(place.index, count, bytes);
  }
}

FencedMemory::FencedMemory(FencedMemory&& other) noexcept
    : place_(other.place_), mapped_(std::exchange(other.mapped_, {})) {}

FencedMemory& FencedMemory::operator=(FencedMemory&& other) noexcept {
  if (this == &other) return *this;
  free();
  place_ = other.place_;
  mapped_ = std::exchange(other.mapped_, {});
  return *this;
}

FencedMemory::~FencedMemory() { free(); }

void FencedMemory::free() noexcept {
  const Mapped gone = std::exchange(mapped_, {});
  if (gone.data == nullptr) return;
  if (place_.kind == Kind::cpu) {
    ::munmap(gone.data, gone.stride * static_cast<std::size_t>(gone.count));
  } else {
    runtime::unmap_fenced(gone, gone.stride * static_cast<std::size_t>(gone.count));
  }
}

}  // namespace syslab::device
