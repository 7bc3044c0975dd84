// Operations over one lane of a ShmSegment: staged through fixed slots, pipelined, and done when the call returns. One
// thread of a rank uses a channel at a time.
//
// All-reduce: a chunk is split into as many parts as there are ranks; every rank puts the others' parts into its slot,
// rank j reduces part j over all ranks in rank order (comm/reduce.hpp), puts the result into its slot, and all take it
// from there. Chunk t is put while chunk t−1 is reduced and t−2 taken. Two ranks instead put and reduce whole chunks:
// that moves as many bytes, with one synchronisation per chunk instead of two. Either way a result element depends only
// on the ranks' elements, not on how a buffer is split.
//
// Every wait is bounded, see comm/shm/lane.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"
#include "comm/shm/lane.hpp"
#include "comm/shm/transfers.hpp"

namespace syslab::comm {

class ShmChannel {
 public:
  // The segment must outlive the channel.
  ShmChannel(ShmSegment& segment, int lane);
  ShmChannel(const ShmChannel&) = delete;
  ShmChannel& operator=(const ShmChannel&) = delete;

  // One collective, or a group of sends and receives, so that neighbours may both send first; between two ranks they
  // keep their order. There are elements and at least two ranks. Streams are ignored.
  void perform(std::span<const Call> calls);
  // The texts of all ranks, by rank. A barrier is an exchange of nothing.
  std::vector<std::string> exchange(const Call& call, std::string_view text);

  std::uint64_t moved_bytes() const { return lane_.moved_bytes(); }

 private:
  void all_reduce(const Call& call);
  void reduce_directly(std::byte* buffer, std::size_t bytes);
  void reduce_by_owners(std::byte* buffer, std::size_t bytes);
  void reduce_scatter(const Call& call);
  void all_gather(const Call& call);
  void gather(const std::byte* part, std::byte* all, std::size_t bytes);
  void broadcast(const Call& call);

  ShmLane lane_;
  ShmTransfers transfers_;
  int rank_, size_;
};

}  // namespace syslab::comm
