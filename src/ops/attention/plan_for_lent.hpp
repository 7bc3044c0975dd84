// Which plan a call follows. Memory is planned without asking a GPU, which a parent process must not: for an H100, an
// H200 and what resembles them. Another GPU has plans of its own, which may need more than was lent.
#pragma once

#include <array>
#include <cstddef>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

inline constexpr int kTypicalMultiprocessors = 132;

// The GPU's own plan, unless it needs more than was lent and the one that memory was planned for does not: a call that
// was lent what it asked for takes no memory, on any GPU, and so can be captured in a graph. `bytes_of(plan)` is what a
// plan needs.
template <typename Plan, typename BytesOf>
const Plan& plan_for_lent(const Plan& own, const Plan& typical, std::size_t lent_bytes, const BytesOf& bytes_of) {
  return bytes_of(own) > lent_bytes && bytes_of(typical) <= lent_bytes ? typical : own;
}

// The plans of a thread's last calls. Planning simulates the grid, and the next call mostly has the same problem.
template <typename Key, typename Plan>
class KeptPlans {
 public:
  template <typename Make>
  Plan get(const Key& key, const Make& make) {
    for (const Kept& one : kept_) {
      if (one.there && one.key == key) return one.plan;
    }
    Kept& one = kept_[next_];
    next_ = (next_ + 1) % kept_.size();
    one = {true, key, make()};
    return one.plan;
  }

 private:
  struct Kept {
    bool there = false;
    Key key;
    Plan plan;
  };
  std::array<Kept, 8> kept_;
  std::size_t next_ = 0;
};

}  // namespace syslab::attention
