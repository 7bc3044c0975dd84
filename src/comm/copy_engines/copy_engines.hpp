// Collectives whose bytes are carried by the GPUs' copy engines, among ranks of one host: multiprocessors are left to
// who computes, but for the sums themselves. What NCCL's kernels cost a backward pass beside them is the reason: on 2
// H200 52 ms became 70 (docs/performance.md).
//
// NOTE: how data goes. A buffer has a shard for each rank; shards go in chunks of some MiB, each through a slot of
// memory that the ranks have opened to each other, of which every rank has two: an inbox for what it is to sum, and a
// landing for what others have summed.
//
//   send   my chunk of every other rank's shard   → its inbox                    then its mark `sent`
//   sum    my own chunk and those in my inbox     → my shard in my buffer        then all ranks' `summed`
//   give   my chunk of my own shard               → every other rank's landing   then its mark `given`
//   take   every other rank's in my landing       → its shard in my buffer       then its mark `taken`
//
// All four are an all-reduce, the first two a reduce-scatter, the last two an all-gather. Links are written over, never
// read: chunks of 4 MiB that read another GPU's memory took 44 % longer, of 16 MiB 14 % (docs/performance.md). Sends
// and gives stand in one stream, so that the engine never changes between channels, and sends are kGiveBehind chunks
// ahead of gives, so that it never waits for a sum either; takes are local, and another engine's.
//
// NOTE: what waits for what. Chunks are numbered from 1 on all ranks alike, and chunk c uses slot c mod slots; a mark
// holds the number of the chunk that has come so far.
//
//   send c   summed[p] ≥ the last chunk before c that was sent in this slot: rank p has emptied it
//   sum c    sent[p] ≥ c
//   give c   my own sum of c; taken[p] ≥ the last chunk before c that was given in this slot
//   take c   given[p] ≥ c
//
// Each wait has one of two jobs. Of `sent` and `given` it is that the bytes have landed: the mark is raised in the same
// stream behind the copy. Of `summed` and `taken` it is that the slot may be overwritten: the other rank has read it.
// Between my own streams events do the same:
//
//   begun    from the caller's stream to my three. Landed: the buffer holds what is to be sent. Left: nothing queued
//            before the call still reads what my sums and takes overwrite.
//   ready    from sum to give, one a slot. Landed: my shard of the chunk is summed. It is recorded again `slots` chunks
//            later, when the give that waits for it is already queued.
//   ended    sent, summed and taken, from my three streams to the caller's. Landed: the results. Left: nothing of the
//            call still reads the buffer, so that the caller may overwrite it.
//
// No rank waits for a later chunk than the one it is at, so that none waits in a circle. No buffer of the caller's is
// reached from outside. It is written by my takes and by my sum. A take writes another rank's shard only behind that
// rank's `given`, which comes behind its sum, which came behind my send: so my send has read that shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"
#include "device/event.hpp"
#include "device/peer_memory.hpp"
#include "device/stream.hpp"

namespace syslab::comm {

// What waits, as the note has it; and for what stood before a call in its stream, and in that stream for its end.
enum class CopyWait { begun, summed, sent, ready, taken, given, ended };

struct CopyEngineOptions {
  std::size_t slot_bytes = std::size_t{32} << 20;  // of a chunk, at most
  int slots = 4;  // chunks under way: what hides that a sum waits for room among other blocks
  // Operations of fewer bytes (of one rank's whole buffer) are left to the backend, whose latency is less.
  std::size_t least_bytes = std::size_t{2} << 20;
  std::optional<CopyWait> left_out = std::nullopt;  // for tests of tests: nobody waits so
};

// "slots=4,slot=32Mi,least=2Mi": of the above what is named, for who measures (SYSLAB_COPY_ENGINES).
// Error(usage).
CopyEngineOptions parse_copy_engine_options(std::string_view text);

class CopyEngines {
 public:
  // Every rank's text, by rank; all call it together.
  using Exchange = std::function<std::vector<std::string>(std::string_view)>;

  // Of `size` ranks, two or more. Collective. Unsupported on all ranks where any of them cannot reach another's memory.
  // Memory: memory_bytes().
  CopyEngines(int rank, int size, device::Place place, const CopyEngineOptions& options, const Exchange& exchange);
  CopyEngines(const CopyEngines&) = delete;
  CopyEngines& operator=(const CopyEngines&) = delete;
  ~CopyEngines();

  // Whether a call is done here: sums of all_reduce and reduce_scatter, and all_gather, from least_bytes on, outside
  // captured streams. All ranks find the same.
  bool takes(const Call& call) const;
  // Behind what is in the stream of the calls, which waits for them. What is queued there later finds the results.
  void queue(std::span<const Call> calls);

  // Of a rank's device: an inbox and a landing for every other rank, and marks.
  static std::size_t memory_bytes(const CopyEngineOptions& options, int size);

  // In peace, when all that was queued is done on every rank: nothing of other ranks' is held any more. Then they come
  // together once more before anybody ends this.
  void close() { peers_.clear(); }
  // After a failure: whatever waits for other ranks goes on, with anything for data. Again until idle(): another rank
  // may write its marks late. Any thread.
  void release() noexcept;
  bool idle() const noexcept;

 private:
  enum class Mark { sent, summed, given, taken };
  struct Shape;  // of one call: its shards and chunks
  struct Chunk {
    const Shape* shape = nullptr;
    std::int64_t at = 0;       // of each shard
    std::uint64_t number = 0;  // of all
  };
  void send(const Chunk& chunk);
  void sum(const Chunk& chunk);
  void give(const Chunk& chunk);
  void take(const Chunk& chunk);
  void wait(Mark mark, int peer, std::uint64_t number, device::Stream stream);
  void wait(CopyWait kind, const device::Event& event, device::Stream later) const {
    if (left_out_ != kind) event.before(later);
  }
  void tell(Mark mark, int peer, std::uint64_t number, device::Stream stream);

  std::size_t mark_at(Mark mark, int of) const;
  // In the memory of `owner`, for what `from` puts there.
  std::size_t inbox_at(int slot, int owner, int from) const;
  std::size_t landing_at(int slot, int owner, int from) const;
  std::size_t slot_of(const Chunk& chunk) const { return chunk.number % static_cast<std::uint64_t>(slots_); }
  int peer(int i) const { return (rank_ + i) % size_; }  // i from 1: neighbours first, so that no rank has all at once
  const device::PeerView& view_of(int peer) const {
    return peers_[static_cast<std::size_t>((peer - rank_ + size_) % size_) - 1];
  }

  int rank_, size_, slots_;
  device::Place place_;
  std::size_t slot_bytes_, least_bytes_;
  std::optional<CopyWait> left_out_;
  std::unique_ptr<device::PeerMemory> own_;
  std::vector<device::PeerView> peers_;  // by rank − rank_ − 1, around
  device::OwnedStream send_, sum_, take_, alarm_;
  device::Event begun_, sent_, summed_, taken_;
  std::vector<device::Event> ready_;                      // by slot: my own sum of a chunk
  std::uint64_t number_ = 0;                              // of the last chunk
  std::vector<std::uint64_t> inbox_used_, landing_used_;  // by slot: the last chunk that was sent, given there
};

}  // namespace syslab::comm
