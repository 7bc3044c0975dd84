// A rank's place in one lane of a ShmSegment: chunks that it puts into its slots and takes from others' slots, waits
// for other ranks, and the error messages if they do not arrive. One thread of a rank uses a lane at a time.
//
//   claim ─ (write) ─ publish ─▶ the others: await_put ─ (take or reduce) ─ release ─▶ claim of the same slot
//
// Every wait ends: when its condition holds, when a rank has failed, left or died, or at the limit. The latter give an
// Error(comm) with the same text on all ranks, naming the rank that is behind and its operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "comm/shm/segment.hpp"

namespace syslab::comm {

class ShmLane {
 public:
  // The segment must outlive it.
  ShmLane(ShmSegment& segment, int index);

  int index() const { return index_; }
  int rank() const { return rank_; }
  std::size_t slot_bytes() const { return segment_.slot_bytes(index_); }
  std::uint64_t next_chunk() const { return next_chunk_; }  // equal on all ranks
  // Bytes that this rank has taken from others' slots since construction.
  std::uint64_t moved_bytes() const { return moved_; }

  void set_now(const Signature& signature) { now_ = signature; }  // what is under way, for messages
  void enter(const Call& collective);

  std::byte* slot(int rank, std::uint64_t chunk) const;
  std::byte* claim(std::uint64_t chunk);  // this rank's slot, once its old contents are no longer needed
  void publish(std::uint64_t chunk);
  void publish_reduced(std::uint64_t chunk);  // the part that this rank owns, in its slot
  void release(std::uint64_t chunk);
  void await_put(int rank, std::uint64_t chunk);
  void await_reduced(int rank, std::uint64_t chunk);
  void take(std::byte* to, const std::byte* from, std::size_t bytes);
  // out = the reduction over all ranks of `bytes` that lie at `offset` in their slots, and of this rank at `own`.
  void reduce_into(std::byte* out, const std::byte* own, std::size_t offset, std::size_t bytes, std::uint64_t chunk);

  void await_long(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late);
  void wake(int rank);
  [[noreturn]] void fail(const std::string& text, const Blame& blame);

 private:
  RankLine& line(int rank) const { return segment_.line(index_, rank); }
  void advance(ShmCounter& counter, std::uint64_t value);
  template <typename Ready>
  void await(int rank, const Ready& ready);  // until ready(rank)
  void look_after(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late, bool at_limit);
  [[noreturn]] void disagree(int rank, std::uint64_t chunk);
  std::string last_of(int rank) const;

  ShmSegment& segment_;
  int index_, rank_, size_;
  bool crowded_ = false;  // more ranks than cores: waiting must not take the core from the awaited rank
  std::uint64_t next_chunk_ = 0;
  std::uint64_t free_until_ = 0;  // chunks below have a free slot
  std::uint64_t moved_ = 0;
  Signature now_;
  std::vector<const void*> sources_;  // kept, so that no collective allocates
};

}  // namespace syslab::comm
