#include "ops/attention/handout_tolerance.hpp"

#include <algorithm>
#include <cmath>

namespace syslab::attention {

Operation at_handout_tolerance(Operation operation) {
  constexpr double kOfficial = 1e-2;  // rtol and atol of the hand-out's tests
  operation.naive = nullptr;
  operation.expect = [derived = std::move(operation.expect)](const Inputs& inputs) {
    std::vector<Expected> expected = derived(inputs);
    for (Expected& one : expected) {
      if (one.tolerance.size() == 1) one.tolerance.resize(one.value.size(), one.tolerance.front());
      for (std::size_t i = 0; i < one.value.size(); ++i) {
        if (!std::isfinite(one.value[i])) continue;
        one.tolerance[i] = std::max(one.tolerance[i], kOfficial * (1 + std::abs(one.value[i])));
      }
    }
    return expected;
  };
  return operation;
}

}  // namespace syslab::attention
