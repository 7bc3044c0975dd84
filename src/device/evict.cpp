#include "device/evict.hpp"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace syslab::device {

#if defined(__x86_64__)

bool can_evict() { return true; }

bool evict(const void* at, std::size_t bytes) {
  constexpr std::uintptr_t kLine = 64;
  const auto* first = static_cast<const std::byte*>(at);
  const std::byte* line = first - reinterpret_cast<std::uintptr_t>(first) % kLine;
  for (; line < first + bytes; line += kLine) _mm_clflush(line);
  _mm_mfence();
  return true;
}

#elif defined(__aarch64__) && defined(__linux__)

bool can_evict() { return true; }

// Linux lets programs use these instructions, and emulates them where a processor needs that.
bool evict(const void* at, std::size_t bytes) {
  std::uint64_t type = 0;
  asm("mrs %0, ctr_el0" : "=r"(type));
  const std::uintptr_t line_bytes = std::uintptr_t{4} << ((type >> 16) & 15U);
  const auto* first = static_cast<const std::byte*>(at);
  const std::byte* line = first - reinterpret_cast<std::uintptr_t>(first) % line_bytes;
  for (; line < first + bytes; line += line_bytes) asm volatile("dc civac, %0" : : "r"(line) : "memory");
  asm volatile("dsb sy" : : : "memory");
  return true;
}

#else

bool can_evict() { return false; }
bool evict(const void*, std::size_t) { return false; }

#endif

}  // namespace syslab::device
