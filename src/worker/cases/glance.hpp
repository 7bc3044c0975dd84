// Whether an output is anywhere near what a trusted computation found for some of its elements: the cheap question that
// is asked of every timed call, before the oracle is.
#pragma once

#include <cstdint>
#include <optional>

#include "contract/operation.hpp"

namespace syslab::worker {

struct Far {
  std::int64_t element = 0;  // row-major: where it is furthest
  double found = 0, near_to = 0;
};

// Far is what is beyond four times `bound`, the largest that the oracle derived for this output so far (for two results
// that may each err by it, and content for which it is larger), and a stretch of elements that differs by more than a
// twentieth of its own size, and not by a trifle beside the bound: where the bound is wide, as the hand-out's is, an
// answer to another question still differs by more than the answer. `output` is contiguous and in host memory.
std::optional<Far> far_from(const ConstTensorView& output, const Glimpse& glimpse, double bound);

}  // namespace syslab::worker
