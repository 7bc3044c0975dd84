// Layout of the memory shared by the ranks of one host. Everything here is read by other processes: plain data and
// lock-free atomics, no pointers.
//
//   Header | lane 0 (data) | lane 1 (control)
//   lane:    RankLine × ranks | slots: ranks × depth × (tag line, bytes) | pairs: ranks² × (PairLine, depth × (tag
//   line, bytes))
//
// A lane is an independent order of operations: the data lane serves queued operations, the control lane the host's
// barrier and exchange, so that neither waits for the other. Within a lane all collectives are split into chunks,
// numbered equally on all ranks; chunk c of rank r goes through slot (r, c mod depth).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/call.hpp"

namespace syslab::comm {

inline constexpr std::uint64_t kShmMagic = 0x73'79'73'6c'61'62'0002;  // the last digits: version of this layout
inline constexpr int kMostShmRanks = 64;
inline constexpr int kShmLanes = 2;
// Two cache lines: x86 fetches lines in pairs, and neighbouring counters must not share a pair.
inline constexpr std::size_t kShmLine = 128;

// A rank's current operation, stored with each chunk. Readers of the chunk compare it, so that differing operations are
// detected before a byte is used. Every rank puts the first chunk of every collective, even if only for this tag.
using ShmTag = Signature;
static_assert(sizeof(ShmTag) <= kShmLine);

struct alignas(kShmLine) ShmCounter {
  std::atomic<std::uint64_t> value{0};
};

// State of one rank in one lane; written by that rank, except for the bell.
struct RankLine {
  ShmCounter put;      // chunks with a contribution in the rank's slots
  ShmCounter reduced;  // chunks with the rank's own part reduced in its slot
  ShmCounter taken;    // chunks with slots that the rank no longer needs
  ShmCounter entered;  // collectives that the rank has begun
  // To wake it: the rank sets `asleep`, checks once more, and sleeps while `bell` is unchanged.
  struct alignas(kShmLine) {
    std::atomic<std::uint32_t> bell{0};
    std::atomic<std::uint32_t> asleep{0};
  } wake;
};

// From one rank to another: chunks sent and chunks received.
struct PairLine {
  ShmCounter sent, received;
};

enum class RankState : std::uint32_t { absent, joined, left };

struct alignas(kShmLine) RankEntry {
  std::atomic<std::uint32_t> state{0};  // RankState
  std::atomic<std::int32_t> pid{0};     // 0: the rank is unclaimed
  std::atomic<std::uint64_t> start{0};  // when the process began, in clock ticks since boot: distinguishes it from a
                                        // later process with the same pid
};

struct alignas(kShmLine) ShmFailure {
  enum State : std::uint32_t { none, being_written, told };
  std::atomic<std::uint32_t> state{none};
  std::uint32_t kind = 0;     // EndingKind
  std::int32_t culprit = -1;  // this and the reason are read once `state` is set
  std::array<char, 1024> reason{};
};

struct ShmSizes {
  std::uint64_t ranks = 0, depth = 0;                     // slots of a rank, of a pair
  std::array<std::uint64_t, kShmLanes> slot_bytes{};      // of a collective's chunk
  std::array<std::uint64_t, kShmLanes> transfer_bytes{};  // of a chunk between two ranks; 0: the lane has no pairs
  bool operator==(const ShmSizes&) const = default;
};

struct ShmHeader {
  std::uint64_t magic = kShmMagic;
  ShmSizes sizes;
  ShmFailure failure;
  std::array<RankEntry, kMostShmRanks> ranks;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "ranks in several processes share these atomics");

}  // namespace syslab::comm
