#include "train/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "device/cuda/graph_memory.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::train {
namespace {

using device::MemoryCategory;

void require_ids(std::span<const std::int64_t> ids, std::size_t count, std::int64_t vocab, std::string_view what) {
  if (ids.size() != count) {
    throw Error(ErrorKind::usage, fmt::format("{} {} given for a batch of {} tokens", ids.size(), what, count));
  }
  const auto wrong = std::ranges::find_if(ids, [vocab](std::int64_t id) { return id < 0 || id >= vocab; });
  if (wrong == ids.end()) return;
  throw Error(ErrorKind::usage, fmt::format("{} {} is {}, outside the vocabulary of {} (ids are 0 to {})", what,
                                            wrong - ids.begin(), *wrong, vocab, vocab - 1));
}

}  // namespace

TrainingStep::TrainingStep(model::Transformer& model, const StepOptions& options, std::int64_t batch, std::int64_t seq)
    : model_(model),
      options_(options),
      batch_(batch),
      seq_(seq),
      optimizer_(model, options.optimizer),
      copied_(device::place_of(model.stream())) {
  if (options.parts < 1 || batch < 1 || seq < 1 || seq > model.config().context) {
    throw Error(ErrorKind::usage,
                fmt::format("a step of {} parts of {} sequences of {} tokens: at least one of each is wanted, and the "
                            "model's context is {}",
                            options.parts, batch, seq, model.config().context));
  }
  if ((options.grad_final || options.before_update || options.update) &&
      model.options().variant == model::Variant::graph) {
    throw Error(ErrorKind::usage,
                "a recorded step tells nobody when a gradient is final: nothing of the host runs in a replay; take "
                "Variant::fused with grad_final");
  }
  const std::size_t bytes = static_cast<std::size_t>(options.parts * 2 * batch * seq) * sizeof(std::int64_t);
  tokens_ = device::Buffer(bytes, "tokens", model.stream(), MemoryCategory::input);
  staged_ = device::Buffer::pinned(bytes, "tokens", device::place_of(model.stream()));
  losses_ =
      model::Tensor({"losses", model.dtypes().statistics, {options.parts}}, model.stream(), MemoryCategory::output);
}

model::Tokens TrainingStep::tokens(int part) const {
  return {tokens_.as<std::int64_t>() + 2 * part * batch_ * seq_, batch_, seq_};
}

void TrainingStep::load(int part, std::span<const std::int64_t> ids, std::span<const std::int64_t> targets) {
  const auto count = static_cast<std::size_t>(batch_ * seq_);
  require_ids(ids, count, model_.config().vocab, "token");
  require_ids(targets, count, model_.config().vocab, "target");
  copied_.synchronize();  // what was staged before has been copied out
  std::int64_t* staged = staged_.as<std::int64_t>() + 2 * static_cast<std::size_t>(part) * count;
  std::ranges::copy(ids, staged);
  std::ranges::copy(targets, staged + count);
  device::copy(tokens_.as<std::int64_t>() + 2 * static_cast<std::size_t>(part) * count, staged,
               2 * count * sizeof(std::int64_t), model_.stream());
  copied_.record(model_.stream());
}

void TrainingStep::begin(double learning_rate, double loss_scale) {
  optimizer_.begin_step(learning_rate, loss_scale * options_.loss_weight / options_.parts, 1.0 / loss_scale);
}

void TrainingStep::forward(int part) {
  const device::NvtxRange phase("forward", device::RangeKind::phase);
  activations_.reset();  // if no backward pass has released them, so that there are never two sets
  if (!model_.kernels().joined && part == 0) model_.refresh_weights_copy();  // as autocast does, at first use
  activations_ = model_.forward(tokens(part));
  model_.loss_and_gradient(*activations_, tokens(part).ids + batch_ * seq_, optimizer_.loss_scale());
  const std::size_t size = size_of(losses_.view().dtype);
  device::copy(static_cast<std::byte*>(losses_.view().data) + static_cast<std::size_t>(part) * size,
               activations_->loss.view().data, size, model_.stream());
}

void TrainingStep::backward(int part) {
  const device::NvtxRange phase("backward", device::RangeKind::phase);
  model::Activations kept = std::move(activations_).value();
  activations_.reset();
  const bool apart = options_.parts_apart, tells = apart || part == options_.parts - 1;
  model_.backward(std::move(kept),
                  {.add = part > 0 && !apart, .grad_final = tells ? options_.grad_final : model::GradFinal{}});
}

void TrainingStep::update() {
  if (options_.before_update) options_.before_update(model_.stream());
  const device::NvtxRange phase("optimizer", device::RangeKind::phase);
  if (options_.update) return options_.update(optimizer_, losses_);
  optimizer_.queue(losses_);
}

void TrainingStep::queue() {
  for (int part = 0; part < options_.parts; ++part) {
    forward(part);
    backward(part);
  }
  update();
}

void TrainingStep::run(double learning_rate, double loss_scale) {
  begin(learning_rate, loss_scale);
  const bool record = model_.options().variant == model::Variant::graph && runs_ == 1 && why_no_graph_.empty();
  ++runs_;
  if (record) {
    device::Capture captured = device::capture(
        model_.stream(), [this] { queue(); }, std::make_shared<device::GraphMemory>(device::place_of(model_.stream())));
    graph_ = std::move(captured.graph);
    why_no_graph_ = std::move(captured.why);
  }
  if (graph_) {
    const device::NvtxRange range("graph", device::RangeKind::kernel, model_.stream(), "replay");
    graph_->replay(model_.stream());
  } else {
    queue();
  }
}

void TrainingStep::record_again() {
  device::synchronize(model_.stream());  // before a graph goes that may be running
  graph_.reset();
  runs_ = std::min<std::int64_t>(runs_, 1);
}

StepResult TrainingStep::result() {
  device::synchronize(model_.stream());
  StepResult result;
  for (const double loss : model::values_of(losses_, model_.stream())) result.loss += loss;
  result.loss /= options_.parts;
  if (optimizer_.has_norm()) {
    result.gradient_norm = model::values_of(optimizer_.norm(), model_.stream()).front();
    std::int64_t count = 0;
    device::copy_now(&count, optimizer_.non_finite(), sizeof(count), model_.stream());
    result.skipped = optimizer_.options().skip_non_finite && count > 0;
  }
  return result;
}

}  // namespace syslab::train
