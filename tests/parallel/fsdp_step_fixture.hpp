// A small transformer whose weights are divided, of sizes that ranks do not divide.
#pragma once

#include <vector>

#include "parallel/fsdp/step.hpp"
#include "tests/parallel/step_fixture.hpp"

namespace syslab::test {

// Sizes that two, three and four ranks do not divide.
inline model::ModelConfig odd_config() {
  model::ModelConfig config = model::tiny_config();
  config.d_model = 20;
  config.d_ff = 50;
  config.heads = 2;
  config.layers = 3;
  return config;
}

inline void set_weights(parallel::FsdpStep& step) {
  const model::ParameterLayout& layout = step.model().parameters().layout();
  for (int i = 0; i < layout.size(); ++i) {
    const std::vector<double> values = model::weights_of(layout.info(i), 1);
    step.write(i, 0, {values.data(), DType::f64, layout.info(i).shape});
  }
}

inline std::vector<double> weights_of(parallel::FsdpStep& step) {
  std::vector<double> all;
  for (int i = 0; i < step.model().parameters().layout().size(); ++i) {
    const std::vector<double> one = step.gather_now(i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// The same, by parameter. Collective.
inline train::ByParameter parameters_of(parallel::FsdpStep& step) {
  train::ByParameter all;
  for (int i = 0; i < step.model().parameters().layout().size(); ++i) all.push_back(step.gather_now(i));
  return all;
}

}  // namespace syslab::test
