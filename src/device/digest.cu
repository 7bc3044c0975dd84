// One pass over the memory with loads of 16 bytes, two words a turn, several turns at once to keep enough loads in
// flight.
//
// What waits for what. Nothing in the kernel: a warp adds up by shuffles, and the warps' sums meet by atomic additions,
// since integers add up to the same sum in any order. The two words were set to zero earlier in the stream, and
// whoever reads them waits for the stream.
#include "device/digest.hpp"

#include <algorithm>
#include <cstring>

#include "device/cuda/cuda.cuh"
#include "device/cuda/kernels.hpp"

namespace syslab::device::kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::uint64_t kMostBlocks = 2048, kPair = 16;  // bytes of two words

// Two words by loads of the type that their address is aligned to.
template <typename Piece>
__device__ void load(const unsigned char* at, std::uint64_t (&words)[2]) {
  Piece pieces[kPair / sizeof(Piece)];
  for (std::uint64_t i = 0; i < kPair / sizeof(Piece); ++i) pieces[i] = reinterpret_cast<const Piece*>(at)[i];
  memcpy(words, pieces, sizeof words);
}

template <typename Piece>
__global__ void __launch_bounds__(kThreads)
    add_words(const unsigned char* data, std::uint64_t bytes, unsigned long long* sums) {
  const std::uint64_t pairs = bytes / kPair, step = static_cast<std::uint64_t>(gridDim.x) * kThreads;
  std::uint64_t own[2] = {};
#pragma unroll 4
  for (std::uint64_t pair = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x; pair < pairs;
       pair += step) {
    std::uint64_t words[2];
    load<Piece>(data + kPair * pair, words);
    add_word(words[0], 2 * pair, own);
    add_word(words[1], 2 * pair + 1, own);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (std::uint64_t at = kPair * pairs; at < bytes; at += 8) {
      std::uint64_t word = 0;
      for (std::uint64_t i = 0; i < 8 && at + i < bytes; ++i) {
        word |= static_cast<std::uint64_t>(data[at + i]) << (8 * i);
      }
      add_word(word, at / 8, own);
    }
  }
  for (std::uint64_t& sum : own) {
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffU, sum, lane);
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(sums, static_cast<unsigned long long>(own[0]));
  atomicAdd(sums + 1, static_cast<unsigned long long>(own[1]));
}

template <typename Piece>
void launch(const void* data, std::uint64_t bytes, std::uint64_t* sums, Stream stream) {
  const std::uint64_t pairs_a_block = 4 * kThreads, pairs = bytes / kPair;
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::uint64_t>((pairs + pairs_a_block - 1) / pairs_a_block, 1, kMostBlocks));
  add_words<Piece><<<blocks, kThreads, 0, cuda_stream(stream)>>>(static_cast<const unsigned char*>(data), bytes,
                                                                 reinterpret_cast<unsigned long long*>(sums));
}

}  // namespace

void add_digest(const void* data, std::size_t bytes, std::uint64_t* sums, Stream stream) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address % sizeof(ulonglong2) == 0) {
    launch<ulonglong2>(data, bytes, sums, stream);
  } else if (address % sizeof(std::uint32_t) == 0) {
    launch<std::uint32_t>(data, bytes, sums, stream);
  } else {
    launch<std::uint8_t>(data, bytes, sums, stream);
  }
  check_launch("add_words");
}

}  // namespace syslab::device::kernels
