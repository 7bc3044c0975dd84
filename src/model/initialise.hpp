// A model's initial weights.
#pragma once

#include <cstdint>
#include <functional>

#include "model/arena.hpp"

namespace syslab::model {

// Standard deviation of the normal that a parameter's truncated normal is cut from: sqrt(2 / (d_in + d_out)) for linear
// ones, 1 for the embedding, 0 for norms, which are ones.
double initial_sigma(const ParameterInfo& info);

// Fills the weights (and their copy): linear ones and the embedding with normal numbers of mean 0 cut at ±3σ, norms
// with ones. A number is a function of the seed, the parameter's name and the element's place in it: it depends neither
// on the arena's order nor on the device, nor on how many threads draw, and an fp64 arena holds the same numbers as an
// fp32 one. Drawn on the host; waits for the arena's stream.
//
// The cut normal has the standard deviation 0.98658 σ: 1 − 6·φ(3) / (2Φ(3) − 1) = 0.97334 is its variance.
void initialise(ParameterArena& arena, std::uint64_t seed);

// The same numbers for weights stored elsewhere: `write` is given elements [first, first + values.elements()) of a
// parameter, fp32 on the host, which may change on return. By parameter and element, in their order.
using WriteWeights = std::function<void(int parameter, std::int64_t first, const ConstTensorView& values)>;
void initialise(const ParameterLayout& layout, std::uint64_t seed, const WriteWeights& write);

}  // namespace syslab::model
