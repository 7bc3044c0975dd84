#include "tests/fuzz/ascending_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) static_cast<void>(at)
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) static_cast<void>(at)
#endif

namespace syslab::fuzz {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::size_t kGap = 32;  // in front of each block; its size stands in the last eight of them
constexpr int kMostLeftBehind = 2000;

// Of the program's one thread: no target starts others.
struct Arena {
  char* whole = nullptr;
  char* begin = nullptr;  // of what the current call may take
  char* end = nullptr;
  char* at = nullptr;
  std::size_t live = 0;
  std::size_t live_before = 0;
  int left_behind = 0;  // calls after which more lived than before
  bool open = false;
};
Arena arena;

void reserve() {
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("memory of the fuzz target");
    std::_Exit(2);
  }
  arena.whole = arena.begin = arena.at = static_cast<char*>(memory);
  arena.end = arena.begin + kBytes;
  ASAN_POISON_MEMORY_REGION(memory, kBytes);
#if __has_feature(address_sanitizer)
  __lsan_register_root_region(memory, kBytes);  // what lives in it may own other memory
#endif
}

bool is_from_here(const void* block) { return arena.whole != nullptr && block >= arena.whole && block < arena.end; }

}  // namespace

AscendingMemory::AscendingMemory() {
  if (arena.whole == nullptr) reserve();
  arena.live_before = arena.live;
  arena.open = true;
}

AscendingMemory::~AscendingMemory() {
  arena.open = false;
  if (arena.live == arena.live_before) {
    ASAN_POISON_MEMORY_REGION(arena.begin, static_cast<std::size_t>(arena.at - arena.begin));
    arena.at = arena.begin;
    return;
  }
  arena.begin = arena.at;  // static objects, made when first asked for
  if (arena.live > arena.live_before && ++arena.left_behind > kMostLeftBehind) {
    std::fprintf(stderr, "memory is left behind after %d calls: %zu blocks\n", arena.left_behind, arena.live);
    std::abort();
  }
}

__attribute__((no_sanitize("address"))) void* AscendingMemory::take(std::size_t bytes) {
  const std::size_t whole = (bytes + 15) / 16 * 16 + kGap;
  if (!arena.open || bytes > kBytes || whole > static_cast<std::size_t>(arena.end - arena.at)) return nullptr;
  char* const block = arena.at + kGap;
  arena.at += whole;
  ++arena.live;
  *reinterpret_cast<volatile std::size_t*>(block - 8) = bytes;
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

__attribute__((no_sanitize("address"))) std::size_t AscendingMemory::size_of(const void* block) {
  return is_from_here(block) ? *reinterpret_cast<const volatile std::size_t*>(static_cast<const char*>(block) - 8) : 0;
}

bool AscendingMemory::give(void* block) {
  if (!is_from_here(block)) return false;
#if __has_feature(address_sanitizer)
  if (__asan_address_is_poisoned(block) != 0 && size_of(block) > 0) {
    std::fprintf(stderr, "%p is freed twice\n", block);
    std::abort();
  }
#endif
  ASAN_POISON_MEMORY_REGION(block, size_of(block));
  --arena.live;
  return true;
}

}  // namespace syslab::fuzz

namespace {

void* allocated(std::size_t bytes) {
  if (void* const block = syslab::fuzz::AscendingMemory::take(bytes)) return block;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void freed(void* block) {
  if (block != nullptr && !syslab::fuzz::AscendingMemory::give(block)) std::free(block);
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (void* const block = allocated(bytes)) return block;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocated(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocated(bytes); }
void operator delete(void* block) noexcept { freed(block); }
void operator delete[](void* block) noexcept { freed(block); }
void operator delete(void* block, std::size_t) noexcept { freed(block); }
void operator delete[](void* block, std::size_t) noexcept { freed(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { freed(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { freed(block); }
