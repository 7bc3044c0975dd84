#include "train/dtypes_seen.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace syslab::train {
namespace {

// "layers.11.attn.qkv" as "layers.*.attn.qkv".
std::string of_any_layer(const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return name;
  const auto digits_end = std::find_if_not(name.begin() + kLayers.size(), name.end(),
                                           [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return std::string(kLayers) + '*' + std::string(digits_end, name.end());
}

}  // namespace

std::vector<DtypeSeen> dtypes_seen(model::Transformer& model, const model::Tokens& tokens, const std::int64_t* targets,
                                   const ConstTensorView& scale) {
  using model::Plane;
  std::vector<DtypeSeen> seen;
  const auto see = [&seen](const std::string& tensor, DType dtype) {
    const bool known =
        std::ranges::any_of(seen, [&](const DtypeSeen& one) { return one.tensor == tensor && one.dtype == dtype; });
    if (!known) seen.push_back({tensor, dtype});
  };
  const model::ParameterArena& arena = model.parameters();
  for (const auto& [plane, name] : {std::pair{Plane::weight, "parameters"},
                                    {Plane::copy, "parameters, copied for products"},
                                    {Plane::gradient, "gradients of parameters"},
                                    {Plane::first_moment, "moments of the optimizer"}}) {
    if (arena.has(plane)) see(name, arena.dtype(plane));
  }
  const model::Watching watching(
      model, [&](const std::string& name, const ConstTensorView& tensor) { see(of_any_layer(name), tensor.dtype); });
  model::Activations made = model.forward(tokens);
  model.loss_and_gradient(made, targets, scale);
  model.backward(std::move(made), {});
  return seen;
}

}  // namespace syslab::train
