#include "device/evict.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

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

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kWord = sizeof(__m128i);
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t to_word = (kWord - reinterpret_cast<std::uintptr_t>(out) % kWord) % kWord;
  const std::size_t head = std::min(bytes, to_word), words = (bytes - head) / kWord,
                    tail = bytes - head - words * kWord;
  std::memcpy(out, in, head);
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t at = head + i * kWord;
    _mm_stream_si128(reinterpret_cast<__m128i*>(out + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at)));
  }
  std::memcpy(out + bytes - tail, in + bytes - tail, tail);
  if (head > 0) evict(out, head);
  if (tail > 0) evict(out + bytes - tail, tail);
  _mm_sfence();
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

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  evict(to, bytes);
}

#else

bool can_evict() { return false; }
bool evict(const void*, std::size_t) { return false; }
void copy_past_caches(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace syslab::device
