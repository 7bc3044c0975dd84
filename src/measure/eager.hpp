// A short look at the same calls launched one by one, where samples were graphs: the second series, for those who
// launch their kernels so, and for peers that are timed so.
#pragma once

#include "measure/sampler.hpp"

namespace syslab::measure {

// At most 0.1 s of windows and no graphs, otherwise as `protocol`: at least one sample is verified, too.
Samples take_eager_samples(Protocol protocol, const Subject& subject, const Bench& bench, std::uint64_t random);

}  // namespace syslab::measure
