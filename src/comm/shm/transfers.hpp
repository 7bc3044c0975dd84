// Sends and receives over one lane of a ShmSegment, through slots that each ordered pair of ranks has to itself.
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

  // Those that go together; between two ranks they go in the order named. Done when the call returns.
  void perform(std::span<const Call> calls);

 private:
  PairLine& pair(const Call& call) const;
  bool is_finished(const Call& call, std::size_t done) const;
  bool can_go_on(const Call& call, std::size_t done) const;
  bool go_on(const Call& call, std::size_t& done);  // false where it could not

  ShmSegment& segment_;
  ShmLane& lane_;
  std::vector<std::size_t> transferred_;  // bytes of each call of a group
};

}  // namespace syslab::comm
