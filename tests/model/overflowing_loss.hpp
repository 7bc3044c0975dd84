// Weights with which a loss is infinite and every gradient finite.
#pragma once

#include "tests/model/model_fixture.hpp"

namespace syslab::model {

// Two logits of the first token so far apart that their difference is no number of fp32, though each is: the loss is
// infinite, and every gradient, being that of a mean over tokens, finite. `arena`: the model's.
inline void make_loss_infinite(Transformer& model, ParameterArena& arena, const Sequences& batch) {
  std::vector<double> x;
  {
    const Uploaded uploaded(batch, {});
    const Watching watching(model, [&](const std::string& name, const ConstTensorView& tensor) {
      if (name == "ln_final.normalized") x = values_of(tensor, {});
    });
    static_cast<void>(model.forward(uploaded.tokens()));
  }
  const std::int64_t d = model.config().d_model;
  x.resize(static_cast<std::size_t>(d));  // the first token's
  double squares = 0;
  for (const double value : x) squares += value * value;
  const std::int64_t target = batch.targets[0], other = (target + 1) % model.config().vocab;
  const int head = arena.layout().lm_head();
  for (double& value : x) value *= 2.5e38 / squares;
  arena.write(Plane::weight, head, other * d, ConstTensorView(x.data(), DType::f64, {d}));
  for (double& value : x) value = -value;
  arena.write(Plane::weight, head, target * d, ConstTensorView(x.data(), DType::f64, {d}));
}

}  // namespace syslab::model
