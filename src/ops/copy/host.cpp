// The rungs on the CPU. All copy bytes and ask for no alignment; those on threads cut the range at multiples of a
// piece, so that no two threads write the same cache line but at the two ends of a piece.
#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "device/parallel.hpp"
#include "ops/copy/rungs.hpp"

namespace syslab::copy {
namespace {

// A thread's piece: large enough (some 50 µs) that handing it out costs nothing, small enough that threads end
// together.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;
// Half a millisecond of one core: less work is done before another thread has woken.
constexpr std::int64_t kBytesOfAThread = std::int64_t{4} << 20;
constexpr auto kAnything = [](const Problem&) -> std::optional<std::string> { return std::nullopt; };

#if defined(__SSE2__)
constexpr bool kHasStreaming = true;

// Stores of 16 bytes that bypass the caches: the line that they fill is never read.
void stream_bytes(const std::byte* from, std::byte* to, std::size_t bytes) {
  constexpr std::size_t kVector = sizeof(__m128i), kLine = 64;
  const std::size_t to_line = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  const std::size_t head = std::min(to_line, bytes);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    __m128i line[kLine / kVector];
    std::memcpy(line, from + at, kLine);
    for (std::size_t i = 0; i < kLine / kVector; ++i) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + i, line[i]);
    }
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();  // only this orders stores that bypass the caches
}
#else
constexpr bool kHasStreaming = false;
void stream_bytes(const std::byte* from, std::byte* to, std::size_t bytes) { std::memcpy(to, from, bytes); }
#endif

std::optional<std::string> needs_streaming(const Problem&) {
  if (kHasStreaming) return std::nullopt;
  return "stores past the caches are written for x86-64 only";
}

void memcpy_bytes(const std::byte* from, std::byte* to, std::size_t bytes) { std::memcpy(to, from, bytes); }

using CopyBytes = void (*)(const std::byte*, std::byte*, std::size_t);

auto whole(CopyBytes copy) {
  return [copy](const Problem& problem, const Args& args, device::Stream) {
    copy(static_cast<const std::byte*>(args.from.data), static_cast<std::byte*>(args.to.data),
         static_cast<std::size_t>(problem.bytes()));
  };
}

auto on_threads(CopyBytes copy) {
  return [copy](const Problem& problem, const Args& args, device::Stream) {
    const auto* from = static_cast<const std::byte*>(args.from.data);
    auto* to = static_cast<std::byte*>(args.to.data);
    const std::int64_t bytes = problem.bytes(), threads = 1 + bytes / kBytesOfAThread,
                       pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
    device::parallel_for(
        pieces,
        [&](std::int64_t piece, int) {
          const std::int64_t first = piece * kPieceBytes;
          copy(from + first, to + first, static_cast<std::size_t>(std::min(kPieceBytes, bytes - first)));
        },
        static_cast<int>(std::min<std::int64_t>(threads, device::thread_count())));
  };
}

Rung rung_on_host(const char* name, const char* teaches) {
  Rung rung;
  rung.name = name;
  rung.teaches = teaches;
  rung.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  rung.supports = kAnything;
  return rung;
}

}  // namespace

Rung memcpy_rung() {
  Rung rung = rung_on_host("memcpy", "the C library's, on one thread: what everybody calls");
  rung.role = Role::peer;
  rung.run = whole(memcpy_bytes);
  return rung;
}

Rung streaming_rung() {
  Rung rung =
      rung_on_host("streaming", "one thread, stores past the caches: slow near, faster far, no line read in vain");
  rung.supports = needs_streaming;
  rung.run = whole(stream_bytes);
  return rung;
}

Rung threads_rung() {
  Rung rung = rung_on_host("threads", "memcpy of pieces of 1 MiB on every thread");
  rung.run = on_threads(memcpy_bytes);
  return rung;
}

Rung threads_streaming_rung() {
  Rung rung = rung_on_host("threads_streaming", "pieces of 1 MiB on every thread, stores past the caches");
  rung.supports = needs_streaming;
  rung.run = on_threads(stream_bytes);
  return rung;
}

}  // namespace syslab::copy
