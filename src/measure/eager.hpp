// A short second series of the same calls launched one by one, if samples were graphs: for users who launch kernels
// that way, and for peers that are timed that way.
#pragma once

#include "measure/sampler.hpp"

namespace syslab::measure {

// At most 0.1 s of windows and no graphs, otherwise as `protocol`: at least one sample is verified, too.
Samples take_eager_samples(Protocol protocol, const Subject& subject, const Instruments& instruments,
                           std::uint64_t random);

}  // namespace syslab::measure
