#include "train/workload.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/random.hpp"
#include "core/text/named.hpp"
#include "core/text/text.hpp"
#include "device/fill_random.hpp"
#include "model/initialise.hpp"
#include "train/non_finite.hpp"

namespace syslab::train {
namespace {

constexpr auto kModes = std::to_array<Named<Mode>>(
    {{Mode::forward, "forward"}, {Mode::forward_backward, "forward_backward"}, {Mode::train, "train"}});

}  // namespace

model::TransformerOptions needed(const WorkloadOptions& options) {
  model::TransformerOptions made = options.model;
  made.with_gradients = options.mode != Mode::forward;
  made.with_moments = options.mode == Mode::train;
  return made;
}

void draw_weights(model::Transformer& model, std::uint64_t seed) {
  draw_weights(model.parameters(), model.kernels(), seed);
  model.refresh_weights_copy();
}

void draw_weights(model::ParameterArena& arena, const model::Kernels& kernels, std::uint64_t seed) {
  for (int i = 0; i < arena.layout().size(); ++i) {
    const model::ParameterInfo& info = arena.layout().info(i);
    const TensorSpec whole{"whole weights", arena.dtype(model::Plane::weight), info.shape};
    const model::Tensor own =
        arena.splits() ? model::Tensor(whole, arena.stream(), device::MemoryCategory::workspace) : model::Tensor();
    const TensorView weight = arena.splits() ? own.view() : arena.view(model::Plane::weight, i);
    if (info.kind == model::ParameterKind::norm) {
      kernels.elementwise->fill({1, weight.elements()}, {1.0, {weight.data, weight.dtype, {1, weight.elements()}}},
                                arena.stream());
    } else {
      device::fill_random(weight, RandomStream::derive(seed, "workload", info.name, "weights"), Distribution::normal,
                          static_cast<float>(model::initial_sigma(info)), 0, arena.stream());
    }
    if (arena.splits()) {
      const auto flat = [](const TensorView& tensor) {
        return TensorView(tensor.data, tensor.dtype, {1, tensor.elements()});
      };
      kernels.elementwise->split(
          {1, weight.elements()},
          {flat(weight), flat(arena.view(model::Plane::copy, i)), flat(arena.view(model::Plane::low, i))},
          arena.stream());
    }
  }
}

std::string_view to_string(Mode mode) { return name_in(kModes, mode); }

Mode parse_mode(std::string_view text) { return find_named(kModes, "mode", text).value; }

Workload::Workload(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed)
    : options_(options),
      model_(options.config, needed(options), stream),
      step_(model_, {.optimizer = options.optimizer}, options.batch, options.seq),
      source_({.rows = options.batch, .context = options.seq, .vocab = options.config.vocab, .seed = seed}),
      seed_(seed) {
  draw_weights(model_, seed);
}

void Workload::refresh() {
  source_.draw(number_++, drawn_);
  step_.load(0, drawn_.x, drawn_.y);
}

void Workload::run() {
  const std::int64_t before = model_.half_blocks_forward();
  if (options_.mode == Mode::train) {
    step_.run(options_.optimizer.adamw.lr);
  } else {
    forward();
    if (options_.mode == Mode::forward_backward) backward();
  }
  const std::int64_t ran = model_.half_blocks_forward() - before;
  if (ran > 0) block_forwards_ = static_cast<double>(ran) / 2;  // a replay runs no code on the host
}

void Workload::forward() {
  step_.begin(options_.optimizer.adamw.lr);
  step_.forward(0);
}
void Workload::backward() { step_.backward(0); }
void Workload::update() { step_.update(); }

double Workload::loss() { return step_.result().loss; }

std::vector<RungTaken> Workload::rungs_taken() const {
  const model::Kernels& kernels = model_.kernels();
  return {{"attention", kernels.attention.name, kernels.attention_because}};
}

std::optional<std::string> Workload::what_is_wrong() {
  const double loss = this->loss();
  if (std::isfinite(loss)) return std::nullopt;
  // An update may have spread it to every weight: it is looked for with those that the run began with.
  draw_weights(model_, seed_);
  const model::Tokens tokens = step_.tokens(0);
  const auto first = first_non_finite(model_, tokens, tokens.ids + tokens.count());
  return fmt::format("the loss is {}; {}", loss,
                     first ? "the first tensor that holds such a number: " + first->text()
                           : "with the weights that it began with the same tokens give finite tensors, so that steps "
                             "before this one led there");
}

}  // namespace syslab::train
