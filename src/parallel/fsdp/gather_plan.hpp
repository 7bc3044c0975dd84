// When sharded weights are gathered, into which slot, and when that slot is free: a plan computed once from a pass's
// read order, the same on all ranks.
//
//   reads     0   1   2   3  |  3   2   1   0        units; | the backward pass begins
//   stays     0   1   2   3━━━━━3   2   1   0        reads of one unit in a row are one stay
//   slot      A   B   A   B     B   A   B   A        two slots
//   gathers   ✓   ✓   ✓   ✓         ·   ✓   ✓        unit 2 is still there
//   after     −   −   0   1             3   2        the stay whose end frees the slot
//
// With two slots a unit's gather may begin when the unit two before it is done: the hand-out's rule. With as many slots
// as units everything stays from its first gather on, which is not to reshard after the forward pass.
//
// A slot is taken from the unit with the latest next read, if any, except the unit just read, so that a gather overlaps
// a whole stay. Source of that rule: Belady 1966.
#pragma once

#include <span>
#include <vector>

namespace syslab::parallel {

struct Stay {
  int unit = 0, slot = 0;
  int first_read = 0, end_read = 0;  // of the reads
  bool gathers = true;               // else it is there from an earlier stay
  int after = -1;                    // a gather may be queued when this stay is over; −1: when the pass begins
  bool frees = false;                // after it the slot's contents are no longer read
};

class GatherPlan {
 public:
  // `unit_of_read`: units from 0 on. Error(usage) for fewer than one slot.
  GatherPlan(std::span<const int> unit_of_read, int slots);

  std::span<const Stay> stays() const { return stays_; }
  int size() const { return static_cast<int>(stays_.size()); }
  const Stay& operator[](int stay) const { return stays_[static_cast<std::size_t>(stay)]; }
  // Stays with gathers that are queued when `stay` ends (−1: when the pass begins), in gather order.
  std::span<const int> gathers_after(int stay) const;
  int gathers() const { return static_cast<int>(order_.size()); }

 private:
  std::vector<Stay> stays_;
  std::vector<int> order_;  // of the stays that gather
  std::vector<int> begin_;  // in order_, by stay + 1; and the end
};

}  // namespace syslab::parallel
