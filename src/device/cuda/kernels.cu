// What waits for what. No kernel here has a barrier: threads share only counters, which were set to zero earlier in the
// stream and to which they add atomically. Whoever reads them waits for the stream. The one kernel that waits is
// hold_back:
//
//   hold_back   landed   The host has raised *ticket to the value that this gate waits for: it has queued everything
//                        that goes after the gate. `volatile` makes every turn read the pinned memory again. The kernel
//                        reads nothing else that the host writes, so it needs no fence.
//               left     Nothing is overwritten. Tickets only grow, so none is missed when the host goes on to the next
//                        gate at once.
//               After limit_ns it gives up and counts itself in *expired. Otherwise a host that waits for this stream
//               before it opens the gate would wait for ever.
#include "device/cuda/kernels.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "device/cuda/cuda.cuh"

namespace syslab::device::kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;  // grid-stride loops do the rest

int blocks_for(std::int64_t count) {
  return static_cast<int>(std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks));
}

template <typename Word>
__global__ void fill_words(Word* at, Pattern pattern, std::int64_t first, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    at[i] = static_cast<Word>(word_of(pattern, first + i));
  }
}

// One atomic for each word that differs. There should be none; a test that finds millions may be slow.
template <typename Word>
__global__ void find_differences(const Word* at, Pattern pattern, std::int64_t first, std::int64_t count,
                                 unsigned long long* found) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long mine = 0, lowest = 0, highest = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    if (at[i] == static_cast<Word>(word_of(pattern, first + i))) continue;
    const auto index = static_cast<unsigned long long>(i);
    ++mine;
    lowest = lowest > ~index ? lowest : ~index;
    highest = index + 1;
  }
  if (mine == 0) return;
  atomicAdd(found, mine);
  atomicMax(found + 1, lowest);
  atomicMax(found + 2, highest);
}

// A NaN has all exponent bits and at least one bit of the fraction, below them.
template <typename Word>
__global__ void find_nans(const Word* at, Word exponent, std::int64_t count, unsigned long long* found) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long mine = 0;
  const Word sign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    if (static_cast<Word>(at[i] & static_cast<Word>(~sign)) > exponent) ++mine;
  }
  if (mine != 0) atomicAdd(found, mine);
}

__device__ std::uint64_t nanoseconds_now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void hold_back(const volatile std::uint64_t* ticket, std::uint64_t wanted, std::uint64_t limit_ns,
                          volatile std::uint64_t* expired) {
  const std::uint64_t began = nanoseconds_now();
  while (*ticket < wanted) {
    if (nanoseconds_now() - began > limit_ns) {
      *expired = *expired + 1;  // one thread, one such kernel at a time
      return;
    }
  }
}

__global__ void read_clocks(ClockStamp* stamps, int multiprocessors) {
  unsigned processor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  std::uint64_t cycles, nanoseconds;
  // Adjacent, and not removed by the compiler.
  asm volatile("mov.u64 %0, %%globaltimer;\n\tmov.u64 %1, %%clock64;" : "=l"(nanoseconds), "=l"(cycles)::"memory");
  if (processor < static_cast<unsigned>(multiprocessors)) stamps[processor] = {cycles, nanoseconds};
}

[[noreturn]] void reject_width(std::size_t width) {
  throw Error(ErrorKind::internal, "no words of " + std::to_string(width) + " bytes: 1, 2, 4 and 8 there are");
}

// Calls launch(word) with a value of the unsigned type of `width` bytes.
template <typename Launch>
void by_width(std::size_t width, const Launch& launch) {
  switch (width) {
    case 1:
      return launch(std::uint8_t{});
    case 2:
      return launch(std::uint16_t{});
    case 4:
      return launch(std::uint32_t{});
    case 8:
      return launch(std::uint64_t{});
    default:
      reject_width(width);
  }
}

unsigned long long* as_counter(std::uint64_t* found) { return reinterpret_cast<unsigned long long*>(found); }

}  // namespace

void fill_pattern(void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position, std::int64_t count,
                  Stream stream) {
  if (count == 0) return;
  by_width(width, [&](auto word) {
    using Word = decltype(word);
    fill_words<Word><<<blocks_for(count), kThreads, 0, cuda_stream(stream)>>>(static_cast<Word*>(at), pattern,
                                                                              first_position, count);
  });
  check_launch("fill_words");
}

void count_differences(const void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position,
                       std::int64_t count, std::uint64_t* found, Stream stream) {
  if (count == 0) return;
  by_width(width, [&](auto word) {
    using Word = decltype(word);
    find_differences<Word><<<blocks_for(count), kThreads, 0, cuda_stream(stream)>>>(
        static_cast<const Word*>(at), pattern, first_position, count, as_counter(found));
  });
  check_launch("find_differences");
}

void count_nans(const void* at, std::size_t width, std::uint64_t exponent_mask, std::int64_t count,
                std::uint64_t* found, Stream stream) {
  if (count == 0) return;
  by_width(width, [&](auto word) {
    using Word = decltype(word);
    find_nans<Word><<<blocks_for(count), kThreads, 0, cuda_stream(stream)>>>(
        static_cast<const Word*>(at), static_cast<Word>(exponent_mask), count, as_counter(found));
  });
  check_launch("find_nans");
}

void wait_for_ticket(const std::uint64_t* ticket, std::uint64_t wanted, std::uint64_t limit_ns, std::uint64_t* expired,
                     Stream stream) {
  hold_back<<<1, 1, 0, cuda_stream(stream)>>>(ticket, wanted, limit_ns, expired);
  check_launch("hold_back");
}

void stamp_clocks(ClockStamp* stamps, int multiprocessors, Stream stream) {
  // One warp a block, as many blocks as multiprocessors: on a GPU with nothing else to do each gets one.
  read_clocks<<<multiprocessors, 1, 0, cuda_stream(stream)>>>(stamps, multiprocessors);
  check_launch("read_clocks");
}

}  // namespace syslab::device::kernels
