// Which plan a call follows. Workspaces are planned without querying a GPU, which a parent process must not do: for an
// H100, an H200 and similar GPUs. Other GPUs have their own plans, which may need more than the given workspace.
#pragma once

#include <array>
#include <cstddef>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

inline constexpr int kTypicalMultiprocessors = 132;

// The GPU's own plan, unless it needs more than the given workspace and the default plan does not: a call with the
// recommended workspace allocates no memory on any GPU, and so can be captured in a graph. `bytes_of(plan)` is a plan's
// need.
template <typename Plan, typename BytesOf>
const Plan& plan_for_lent(const Plan& own, const Plan& typical, std::size_t lent_bytes, const BytesOf& bytes_of) {
  return bytes_of(own) > lent_bytes && bytes_of(typical) <= lent_bytes ? typical : own;
}

// Caches the plans of a thread's last calls: planning simulates the grid, and consecutive calls mostly have the same
// problem.
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
