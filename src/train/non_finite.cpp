#include "train/non_finite.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

namespace syslab::train {
namespace {

std::optional<NonFinite> look(const std::string& name, const std::vector<double>& values, const Shape& shape,
                              DType dtype) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return NonFinite{name, static_cast<std::int64_t>(i), values[i], shape, dtype};
    }
  }
  return std::nullopt;
}

std::optional<NonFinite> look(const std::string& name, const ConstTensorView& tensor, device::Stream stream) {
  return look(name, model::values_of(tensor, stream), tensor.shape, tensor.dtype);
}

}  // namespace

std::string NonFinite::text() const {
  std::string at;
  std::int64_t rest = index;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    at = fmt::format("{}{}{}", rest % shape[dim], at.empty() ? "" : ", ", at);
    rest /= shape[dim];
  }
  return fmt::format("{}[{}] of {} in {} is {}", tensor, at, to_string(shape), to_string(dtype), value);
}

std::optional<NonFinite> first_non_finite(model::Transformer& model, const model::Tokens& tokens,
                                          const std::int64_t* targets) {
  const device::Stream stream = model.stream();
  const model::ParameterArena& arena = model.parameters();
  for (const model::Plane plane : {model::Plane::weight, arena.compute_plane()}) {
    for (int i = 0; i < arena.layout().size(); ++i) {
      const model::ParameterInfo& info = arena.layout().info(i);
      if (auto found = look(info.name, arena.read(plane, i), info.shape, arena.dtype(plane))) return found;
    }
  }
  std::optional<NonFinite> found;
  const model::Watching watching(model, [&](const std::string& name, const ConstTensorView& tensor) {
    if (!found) found = look(name, tensor, stream);
  });
  if (!model.kernels().joined) model.refresh_weights_copy();
  if (!arena.has(model::Plane::gradient)) {
    model::Activations made = model.forward(tokens, model::Keep::nothing);
    model.loss(made, targets);
    return found;
  }
  model::Activations made = model.forward(tokens);
  model.loss_and_gradient(made, targets, {});
  model.backward(std::move(made), {});
  for (int i = 0; !found && i < arena.layout().size(); ++i) {
    found = look("gradient of " + arena.layout().info(i).name, arena.view(model::Plane::gradient, i), stream);
  }
  return found;
}

}  // namespace syslab::train
