// Operations over one lane of a ShmSegment: staged through fixed slots, pipelined, and done when the call returns. One
// thread of a rank uses a channel at a time.
//
// All-reduce: a chunk is cut into as many parts as there are ranks; every rank puts the parts of the others into its
// slot, rank j reduces part j over all ranks in their order (comm/reduce.hpp), puts the result into its slot, and all
// take it from there. Chunk t is put while chunk t−1 is reduced and t−2 taken. Two ranks rather put all and reduce all:
// that moves as many bytes, and they meet once a chunk instead of twice. Either way an element of the result depends on
// the ranks' elements alone, not on how a buffer is cut.
//
// Every wait ends: when what it waits for is there, when a rank has failed, left or died, or at the limit. Then it is
// an Error(comm) with the same text on all ranks, which names who is behind and in which operation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"
#include "comm/shm_segment.hpp"

namespace syslab::comm {

class ShmChannel {
 public:
  // The segment must outlive the channel.
  ShmChannel(ShmSegment& segment, int lane);

  // One collective, or sends and receives that go together, so that neighbours may both send first; between two ranks
  // they go in the order named. There are elements and at least two ranks. Streams are not looked at.
  void perform(std::span<const Call> calls);
  // The texts of all ranks, by rank. A barrier is an exchange of nothing.
  std::vector<std::string> exchange(const Call& call, std::string_view text);

  // Bytes that this rank has taken from the slots of others, since it was made.
  std::uint64_t moved_bytes() const { return moved_; }

 private:
  void enter(const Call& call);
  void all_reduce(const Call& call);
  void reduce_directly(std::byte* buffer, std::size_t bytes);
  void reduce_by_owners(std::byte* buffer, std::size_t bytes);
  void reduce_scatter(const Call& call);
  void all_gather(const Call& call);
  void gather(const std::byte* part, std::byte* all, std::size_t bytes);
  void broadcast(const Call& call);
  void transfer(std::span<const Call> calls);

  std::byte* slot(int rank, std::uint64_t chunk) const;
  std::byte* claim(std::uint64_t chunk);  // this rank's slot, once nobody needs what was in it
  void publish(std::uint64_t chunk);
  void release(std::uint64_t chunk);
  void await_put(int rank, std::uint64_t chunk);
  void await_reduced(int rank, std::uint64_t chunk);
  void take(std::byte* to, const std::byte* from, std::size_t bytes);
  void reduce_into(std::byte* out, const std::byte* own, std::size_t offset, std::size_t bytes, std::uint64_t chunk);
  void advance(ShmCounter& counter, std::uint64_t value);
  void wake(int rank);

  PairLine& pair(const Call& call) const;
  bool is_finished(const Call& call, std::size_t done) const;
  bool can_go_on(const Call& call, std::size_t done) const;
  bool go_on(const Call& call, std::size_t& done);  // false where it could not

  template <typename Ready>
  void await(int rank, const Ready& ready);  // until ready(rank)
  void await_long(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late);
  void look_after(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late, bool at_limit);
  [[noreturn]] void fail(const std::string& text, const Blame& blame);
  [[noreturn]] void disagree(int rank, std::uint64_t chunk);
  std::string last_of(int rank) const;

  ShmSegment& segment_;
  int lane_, rank_, size_;
  bool crowded_ = false;          // more ranks than cores: waiting must not keep a core from who is waited for
  std::uint64_t next_chunk_ = 0;  // all ranks count alike
  std::uint64_t free_until_ = 0;  // chunks below have a free slot
  std::uint64_t moved_ = 0;
  Signature now_;                         // what is under way
  std::vector<const void*> sources_;      // kept, so that no collective allocates
  std::vector<std::size_t> transferred_;  // bytes of each call of a group
};

}  // namespace syslab::comm
