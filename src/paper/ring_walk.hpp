// Ring collectives walked through in one process: each rank's buffer is a vector, every message is copied and counted.
// Slow and plain on purpose: what the formulas of paper/ring_costs.hpp are held against, and what lets a sharded
// layer compute (paper/layer_walk.hpp).
//
//   RingWalk ring(3);
//   Buffers buffers{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}};
//   ring.all_reduce(buffers);                    // every rank holds {111, 222, 333}
//   ring.sent_elements();                        // {4, 4, 4}
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace syslab::parallel {

using Buffers = std::vector<std::vector<double>>;  // by rank

class RingWalk {
 public:
  explicit RingWalk(std::int64_t ranks);  // Error(usage) for fewer than one

  std::int64_t ranks() const { return static_cast<std::int64_t>(sent_elements_.size()); }

  // Of n elements a rank owns [begin(rank, n), begin(rank + 1, n)): parts that differ by one element at most.
  std::size_t begin(std::int64_t rank, std::size_t elements) const;

  // Buffers of one length, one a rank; Error(internal) otherwise.
  void reduce_scatter(Buffers& buffers);  // a rank's own part becomes the sum; the rest is left as the walk left it
  void all_gather(Buffers& buffers);      // every rank's own part goes to all
  void all_reduce(Buffers& buffers);      // reduce-scatter, then all-gather

  const std::vector<std::int64_t>& sent_elements() const { return sent_elements_; }  // since the beginning, by rank
  std::int64_t steps() const { return steps_; }                                      // messages that follow each other

 private:
  using Receive = std::function<void(double& mine, double theirs)>;
  // One step: every rank sends the part that `part_of` names to the next one, all at the same time.
  void step(Buffers& buffers, const std::function<std::int64_t(std::int64_t)>& part_of, const Receive& receive);
  void require_alike(const Buffers& buffers) const;

  std::vector<std::int64_t> sent_elements_;
  std::int64_t steps_ = 0;
};

}  // namespace syslab::parallel
