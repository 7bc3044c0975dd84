// The toy models of the hand-outs' tests (tests/common.py of 2025), and weights as those tests draw them.
#pragma once

#include <cstdint>
#include <vector>

#include "certify/toy_network.hpp"
#include "core/random.hpp"

namespace syslab::parallel {

inline ToyModel official_model() { return {.layers = {{10, 10}, {10, 50, true, true}, {50, 5}}, .fixed = true}; }

inline ToyModel official_tied_model() {
  return {.layers = {{10, 10}, {10, 50}, {50, 10}, {10, 50, false, false, 1}, {50, 5}}};
}

inline void draw_normal(ToyNetwork& network, std::uint64_t seed) {
  const RandomStream random(seed);
  std::vector<float> drawn(static_cast<std::size_t>(network.weights().elements()));
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = 0.3F * random.normal(i);
  network.set_weights(drawn);
}

// Of element `weight` of weights(): whether an optimizer is given it with a gradient.
inline bool is_trained(const ToyNetwork& network, std::size_t weight) {
  const float* const element = network.weights().as<float>() + weight;
  for (const OptimizedParameter& parameter : network.parameters()) {
    const float* const first = parameter.weight.as<float>();
    if (element >= first && element < first + parameter.weight.elements()) return !parameter.frozen();
  }
  return false;  // padding
}

}  // namespace syslab::parallel
