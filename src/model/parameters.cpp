#include "model/parameters.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "core/text/text.hpp"

namespace syslab::model {
namespace {

constexpr int kTensorsOfLayer = 9;

}  // namespace

std::string_view to_string(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::embedding:
      return "embedding";
    case ParameterKind::linear:
      return "linear";
    case ParameterKind::norm:
      return "norm";
  }
  return "?";
}

ParameterLayout::ParameterLayout(const ModelConfig& config, std::int64_t alignment)
    : config_(config), alignment_(alignment) {
  validate(config_);
  if (alignment < 1 || alignment % kAlignedElements != 0) {
    throw Error(ErrorKind::usage,
                fmt::format("parameters laid out at multiples of {} elements: a multiple of {} is wanted", alignment,
                            kAlignedElements));
  }
  register_all();
  offsets_.assign(infos_.size(), 0);
  padded_ends_.assign(infos_.size(), 0);
  brackets_.assign(infos_.size(), {});
  place(std::array{lm_head()});
  place(std::array{ln_final()});
  for (std::int64_t number = config_.layers - 1; number >= 0; --number) {
    const LayerIndices at = layer(number);
    place(std::array{at.w2});
    place(std::array{at.w1, at.w3});
    place(std::array{at.ln2});
    place(std::array{at.output});
    place(std::array{at.q, at.k, at.v});
    place(std::array{at.ln1});
  }
  place(std::array{embedding()});
}

LayerIndices ParameterLayout::layer(std::int64_t layer) const {
  if (layer < 0 || layer >= config_.layers) {
    throw Error(ErrorKind::internal, fmt::format("layer {} of a model with {}", layer, config_.layers));
  }
  const int first = 1 + static_cast<int>(layer) * kTensorsOfLayer;
  return {first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7, first + 8};
}

void ParameterLayout::register_all() {
  const std::int64_t d = config_.d_model, f = config_.d_ff;
  const auto add = [this](std::string name, const Shape& shape, ParameterKind kind, std::int64_t layer = -1) {
    index_.emplace(name, size());
    parameters_ += shape.elements();
    infos_.push_back({std::move(name), shape, kind, layer});
  };
  add("token_embeddings.weight", {config_.vocab, d}, ParameterKind::embedding);
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    const auto linear = [&](std::string_view name, const Shape& shape) {
      add(fmt::format("layers.{}.{}.weight", i, name), shape, ParameterKind::linear, i);
    };
    linear("attn.q_proj", {d, d});
    linear("attn.k_proj", {d, d});
    linear("attn.v_proj", {d, d});
    linear("attn.output_proj", {d, d});
    linear("ffn.w1", {f, d});
    linear("ffn.w2", {d, f});
    linear("ffn.w3", {f, d});
    add(fmt::format("layers.{}.ln1.weight", i), {d}, ParameterKind::norm, i);
    add(fmt::format("layers.{}.ln2.weight", i), {d}, ParameterKind::norm, i);
  }
  add("ln_final.weight", {d}, ParameterKind::norm);
  add("lm_head.weight", {config_.vocab, d}, ParameterKind::linear);
}

// Places the tensors after those already there, one after the other, and pads to the next aligned element.
void ParameterLayout::place(std::span<const int> bracket) {
  const Bracket of{arena_order_.size(), bracket.size()};
  for (const int index : bracket) {
    const auto at = static_cast<std::size_t>(index);
    brackets_[at] = of;
    offsets_[at] = elements_;
    elements_ += infos_[at].shape.elements();
    padded_ends_[at] = elements_;
    arena_order_.push_back(index);
  }
  elements_ = round_up(elements_, alignment_);
  padded_ends_[static_cast<std::size_t>(bracket.back())] = elements_;
}

Shape ParameterLayout::bracket_shape(int index) const {
  std::int64_t rows = 0;
  for (const int one : bracket(index)) rows += info(one).shape[0];
  const Shape& shape = info(index).shape;
  return shape.rank() == 1 ? Shape{rows} : Shape{rows, shape[1]};
}

int ParameterLayout::index_of(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  if (found == index_.end()) throw Error(ErrorKind::usage, unknown_name("parameter", name, names()));
  return found->second;
}

std::vector<std::string> ParameterLayout::names() const {
  std::vector<std::string> names;
  names.reserve(infos_.size());
  for (const ParameterInfo& info : infos_) names.push_back(info.name);
  return names;
}

}  // namespace syslab::model
