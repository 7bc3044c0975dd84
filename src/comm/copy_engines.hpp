// Collectives whose bytes are carried by the GPUs' copy engines, among ranks of one host: multiprocessors are left to
// who computes, but for the sums themselves. What NCCL's kernels cost a backward pass beside them is the reason: on 2
// H200 51 ms became 69 (docs/performance.md).
//
// NOTE: how data goes. A buffer has a shard for each rank; shards go in chunks of a few MiB, each through a slot of
// memory that the ranks have opened to each other, an inbox and an outbox:
//
//   push   my chunk of every other rank's shard          → its inbox                    then its mark `arrived`
//   sum    my own chunk and those in my inbox            → my buffer and my outbox      then all ranks' `filled`
//   pull   every other rank's outbox                     → its shard in my buffer       then its mark `pulled`
//
// All three are an all-reduce, the first two a reduce-scatter; an all-gather copies its part to the outbox instead of
// summing, and pulls. Each is done in streams of its own, so that a chunk is pushed while those before it are summed
// and pulled; pushes and pulls in several, in turn, so that what one of them waits for does not hold up its engine.
//
// NOTE: what waits for what. Chunks are numbered from 1 on all ranks alike, and chunk c uses slot c mod slots and lane
// c mod lanes; a mark, of which each lane has its own, holds the number of the chunk that has come so far.
//
//   push c   filled[p] ≥ c − slots    rank p has emptied that slot of its inbox
//   sum c    arrived[p] ≥ c           all have pushed
//            pulled[p] ≥ the last chunk before c that used this slot of my outbox
//   pull c   filled[p] ≥ c
//
// No buffer of the caller's is reached from outside. It is written by the pulls and by my sum, of a shard that I have
// pushed before it was summed, and read by my pushes, which were over before what they brought was summed, and pulled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"
#include "device/event.hpp"
#include "device/peer_memory.hpp"
#include "device/stream.hpp"

namespace syslab::comm {

struct CopyEngineOptions {
  std::size_t slot_bytes = std::size_t{16} << 20;  // of a chunk, at most
  int slots = 6;  // chunks under way: what hides that a sum waits for room among other blocks
  int lanes = 2;  // streams for pushes, and as many for pulls
  // Operations of fewer bytes (of one rank's whole buffer) are left to the backend, whose latency is less.
  std::size_t least_bytes = std::size_t{2} << 20;
};

// "slots=6,lanes=2,slot=16Mi,least=2Mi": of the above what is named, for who measures (SYSLAB_COPY_ENGINES).
// Error(usage).
CopyEngineOptions parse_copy_engine_options(std::string_view text);

class CopyEngines {
 public:
  // Every rank's text, by rank; all call it together.
  using Exchange = std::function<std::vector<std::string>(std::string_view)>;

  // Of `size` ranks, two or more. Collective. Unsupported on all ranks where any of them cannot reach another's memory.
  // Memory: 2 · slots · slot_bytes for two ranks, one inbox more for each further one.
  CopyEngines(int rank, int size, device::Place place, const CopyEngineOptions& options, const Exchange& exchange);
  CopyEngines(const CopyEngines&) = delete;
  CopyEngines& operator=(const CopyEngines&) = delete;
  ~CopyEngines();

  // Whether a call is done here: sums of all_reduce and reduce_scatter, and all_gather, from least_bytes on, outside
  // captured streams. All ranks find the same.
  bool takes(const Call& call) const;
  // Behind what is in the stream of the calls, which waits for them. What is queued there later finds the results.
  void queue(std::span<const Call> calls);

  // In peace, when all that was queued is done on every rank: nothing of other ranks' is held any more. Then they come
  // together once more before anybody ends this.
  void close() { peers_.clear(); }
  // After a failure: whatever waits for other ranks goes on, with anything for data. Again until idle(): another rank
  // may write its marks late. Any thread.
  void release() noexcept;
  bool idle() const noexcept;

 private:
  enum class Mark { arrived, filled, pulled };
  struct Shape;  // of one call: its shards and chunks
  void push(const Shape& shape, std::int64_t chunk);
  void fill(const Shape& shape, std::int64_t chunk);
  void pull(const Shape& shape, std::int64_t chunk);
  void wait(Mark mark, int peer, std::uint64_t number, device::Stream stream);
  void tell(Mark mark, int peer, std::uint64_t number, device::Stream stream);

  std::size_t mark_at(Mark mark, int of, std::uint64_t number) const;
  device::Stream lane_of(const std::vector<device::OwnedStream>& lanes) const { return lanes[number_ % lanes.size()]; }
  std::size_t outbox_at(int slot) const;
  std::size_t inbox_at(int slot, int owner, int from) const;
  int slot_of(std::uint64_t number) const { return static_cast<int>(number % static_cast<std::uint64_t>(slots_)); }
  int peer(int i) const { return (rank_ + i) % size_; }  // i from 1: neighbours first, so that no rank has all at once

  int rank_, size_, slots_, lanes_;
  device::Place place_;
  std::size_t slot_bytes_, least_bytes_;
  std::unique_ptr<device::PeerMemory> own_;
  std::vector<device::PeerView> peers_;           // by rank − rank_ − 1, around
  std::vector<device::OwnedStream> push_, pull_;  // by lane
  device::OwnedStream sum_, alarm_;
  std::vector<device::Stream> streams_;  // all but the last
  device::Event begun_;
  std::vector<device::Event> ended_;        // by stream
  std::uint64_t number_ = 0;                // of the last chunk
  std::vector<std::uint64_t> outbox_used_;  // by slot: the last chunk that lay in the outbox
};

}  // namespace syslab::comm
