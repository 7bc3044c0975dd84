// Sends and receives over one lane of a ShmSegment, through separate slots for each ordered pair of ranks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/shm/lane.hpp"

namespace syslab::comm {

class ShmTransfers {
 public:
  // Both must outlive it.
  ShmTransfers(ShmSegment& segment, ShmLane& lane);

  // A group of calls; between two ranks they keep their order. Complete on return.
  void perform(std::span<const Call> calls);

 private:
  PairLine& pair(const Call& call) const;
  bool is_finished(const Call& call, std::size_t done) const;
  bool can_go_on(const Call& call, std::size_t done) const;
  bool go_on(const Call& call, std::size_t& done);  // false if it could not progress

  ShmSegment& segment_;
  ShmLane& lane_;
  std::vector<std::size_t> transferred_;  // bytes of each call of a group
};

}  // namespace syslab::comm
