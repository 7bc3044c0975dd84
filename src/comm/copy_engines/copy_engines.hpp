// Collectives that move data with the GPUs' copy engines, among ranks of one host: only the sums use multiprocessors,
// so computation keeps the rest. The reason is what NCCL's kernels cost a concurrent backward pass: on 2 H200 it took
// 70 ms instead of 52 (docs/performance.md).
//
// NOTE: how data moves. A buffer has a shard for each rank; shards move in chunks of some MiB, each through a slot of
// memory shared between the ranks. Every rank has two kinds: an inbox for data that it sums, and a landing for sums of
// other ranks.
//
//   send   my chunk of every other rank's shard   → its inbox                    then its mark `sent`
//   sum    my own chunk and those in my inbox     → my shard in my buffer        then all ranks' `summed`
//   give   my chunk of my own shard               → every other rank's landing   then its mark `given`
//   take   every other rank's in my landing       → its shard in my buffer       then its mark `taken`
//
// All four are an all-reduce, the first two a reduce-scatter, the last two an all-gather. Links are written over, never
// read: chunks of 4 MiB that read another GPU's memory took 44 % longer, of 16 MiB 14 % (docs/performance.md). Sends
// and gives share one stream, so that the engine never switches channels, and sends are kGiveBehind chunks ahead of
// gives, so that it never waits for a sum; takes are local and use another engine.
//
// NOTE: what waits for what. All ranks number chunks from 1, and chunk c uses slot c mod slots; a mark holds the number
// of the last chunk that has arrived.
//
//   send c   summed[p] ≥ the last chunk before c that was sent in this slot: rank p has emptied it
//   sum c    sent[p] ≥ c
//   give c   my own sum of c (an all-gather has none); taken[p] ≥ the last chunk before c that was given in this slot
//   take c   given[p] ≥ c
//
// Each wait has one of two jobs. For `sent` and `given`, that the bytes have landed: the mark is raised in the same
// stream after the copy. For `summed` and `taken`, that the slot may be overwritten: the other rank has read it. Events
// do the same between a rank's own streams:
//
//   begun    from the caller's stream to my three. Landed: the buffer holds what is to be sent. Left: nothing queued
//            before the call still reads what my sums and takes overwrite.
//   ready    from sum to give, one a slot. Landed: my shard of the chunk is summed. It is recorded again `slots` chunks
//            later, when the give that waits for it is already queued.
//   ended    sent, summed and taken, from my three streams to the caller's. Landed: the results. Left: nothing of the
//            call still reads the buffer, so that the caller may overwrite it.
//
// There is no deadlock: no mark of a later chunk is waited for. In its stream a give stands behind sends of at most
// slots − 1 later chunks, and those wait for sums of chunks before its own. Other ranks never access the caller's
// buffer. Only my takes and my sum write it. A take writes another rank's shard only after that rank's `given`, which
// follows its sum, which followed my send: so my send has read that shard. In an all-gather nothing is sent: gives read
// only my own piece, and what takes overwrite is the others'.
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

// The waits of the note above; `begun` and `ended` order a call after earlier work in its stream and later work after
// the call.
enum class CopyWait { begun, summed, sent, ready, taken, given, ended };

struct CopyEngineOptions {
  std::size_t slot_bytes = std::size_t{32} << 20;  // of a chunk, at most
  int slots = 4;  // chunks in flight: hide the time that a sum waits for free multiprocessors
  // Operations of fewer bytes (of one rank's whole buffer) are left to the backend, which has less latency.
  std::size_t least_bytes = std::size_t{2} << 20;
  std::optional<CopyWait> left_out = std::nullopt;  // for tests of tests: omits this wait
};

// "slots=4,slot=32Mi,least=2Mi": sets the named options above, for measurements (SYSLAB_COPY_ENGINES). Error(usage).
CopyEngineOptions parse_copy_engine_options(std::string_view text);

class CopyEngines {
 public:
  // Returns every rank's text, by rank; collective.
  using Exchange = std::function<std::vector<std::string>(std::string_view)>;

  // For `size` ranks, at least two. Collective. Unsupported on all ranks if any of them cannot reach another's memory.
  // Memory: memory_bytes().
  CopyEngines(int rank, int size, device::Place place, const CopyEngineOptions& options, const Exchange& exchange);
  CopyEngines(const CopyEngines&) = delete;
  CopyEngines& operator=(const CopyEngines&) = delete;
  ~CopyEngines();

  // Whether a call is handled here: sums of all_reduce and reduce_scatter, and all_gather, from least_bytes on, outside
  // captured streams. All ranks decide alike.
  bool takes(const Call& call) const;
  // Runs after earlier work in the calls' stream; later work in that stream sees the results.
  void queue(std::span<const Call> calls);

  // On each rank's device: an inbox and a landing for every other rank, and marks.
  static std::size_t memory_bytes(const CopyEngineOptions& options, int size);

  // Orderly end, when all queued work is done on every rank: unmaps the other ranks' memory. The ranks must then
  // synchronise once more before any of them destroys this.
  void close() { peers_.clear(); }
  // After a failure: releases everything that waits for other ranks, with undefined data. Repeat until idle(): another
  // rank may write its marks late. Any thread.
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
  int peer(int i) const {
    return (rank_ + i) % size_;
  }  // i from 1: neighbours first, so that no rank receives from
     // all at once
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
