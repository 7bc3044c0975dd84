#include "train/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "device/buffer.hpp"
#include "device/memory.hpp"
#include "model/initialise.hpp"
#include "train/non_finite.hpp"

namespace syslab::train {
namespace {

RunOptions checked(RunOptions options) {
  if (options.steps < 1) {
    throw Error(ErrorKind::usage, fmt::format("a run of {} steps; at least 1 is wanted", options.steps));
  }
  validate(options.schedule);
  if (!(options.max_norm > 0)) {
    throw Error(ErrorKind::usage, fmt::format("gradients are to be clipped to a norm of {}; it must be positive (inf "
                                              "for no clipping)",
                                              options.max_norm));
  }
  return options;
}

StepOptions step_options(const RunOptions& options) {
  // A step with non-finite gradients changes nothing, so the tensor that held the first one can still be found.
  return {.optimizer = {.adamw = options.adamw, .max_norm = options.max_norm, .skip_non_finite = true}};
}

BatchOptions batch_options(const RunOptions& options) {
  return {.rows = options.batch, .context = options.seq, .vocab = options.config.vocab, .seed = options.seed};
}

// The first token of validation.
std::int64_t cut_of(const TokenFile& text) { return text.size() - text.size() / 10; }

}  // namespace

void check_run(const RunOptions& options, const TokenFile& text) {
  const BatchOptions drawn = batch_options(checked(options));
  TokenBatches(text, drawn, 0, cut_of(text));
  TokenBatches(text, drawn, cut_of(text), text.size());
}

TrainingRun::TrainingRun(const RunOptions& options, const TokenFile& text, device::Stream stream)
    : options_(checked(options)),
      text_(&text),
      model_(options_.config, options_.model, stream),
      step_(model_, step_options(options_), options_.batch, options_.seq),
      cut_(cut_of(text)),
      learned_(text, batch_options(options_), 0, cut_),
      kept_back_(text, batch_options(options_), cut_, text.size()) {
  text.check(options_.config.vocab);
  model::initialise(model_.parameters(), options_.seed);
  if (scales_loss()) state_.scaler = scaler_.state();
}

RunStep TrainingRun::next() {
  if (is_done()) throw Error(ErrorKind::internal, "a run that is done has no next step");
  RunStep made{.step = state_.step, .learning_rate = options_.schedule.at(state_.step)};
  Batch batch;
  learned_.draw(state_.next_batch++, batch);
  step_.load(0, batch.x, batch.y);
  step_.optimizer().set_steps(state_.step);  // not counting skipped steps
  step_.run(made.learning_rate, scales_loss() ? scaler_.scale() : 1.0);
  const StepResult result = step_.result();
  made.loss = result.loss;
  made.gradient_norm = result.gradient_norm.value_or(0);
  made.skipped = result.skipped;
  if (!std::isfinite(result.loss) || (result.skipped && !scales_loss())) report_non_finite(result.loss);
  if (scales_loss()) {
    scaler_.update(result.skipped);
    state_.scaler = scaler_.state();
    // Gradients that overflow even under this scale overflow under every scale: trying would never end.
    constexpr float kHopeless = 0x1p-20F;
    if (result.skipped && scaler_.scale() < kHopeless) report_non_finite(result.loss);
  }
  if (!made.skipped) ++state_.step;
  return made;
}

void TrainingRun::report_non_finite(double loss) {
  const model::Tokens tokens = step_.tokens(0);
  const auto first = first_non_finite(model_, tokens, tokens.ids + tokens.count());
  throw Error(ErrorKind::check, fmt::format("step {}: the loss is {}{}; {}", state_.step, loss,
                                            std::isfinite(loss) ? " and a gradient is no number" : "",
                                            first ? "the first tensor that holds no number: " + first->text()
                                                  : "all tensors of its forward and backward pass are finite"));
}

double TrainingRun::validation_loss(std::int64_t batches) {
  const std::size_t count = static_cast<std::size_t>(options_.batch * options_.seq);
  const device::Stream stream = model_.stream();
  const device::Buffer ids(2 * count * sizeof(std::int64_t), "validation", stream, device::MemoryCategory::input);
  auto* x = static_cast<std::int64_t*>(ids.data());
  if (!model_.kernels().joined) model_.refresh_weights_copy();
  double sum = 0;
  for (std::int64_t number = 0; number < batches; ++number) {
    Batch batch;
    kept_back_.draw(static_cast<std::uint64_t>(number), batch);
    device::copy_now(x, batch.x.data(), count * sizeof(std::int64_t), stream);
    device::copy_now(x + count, batch.y.data(), count * sizeof(std::int64_t), stream);
    model::Activations made = model_.forward({x, options_.batch, options_.seq}, model::Keep::nothing);
    model_.loss(made, x + count);
    sum += model::values_of(made.loss, stream).front();
  }
  return sum / static_cast<double>(batches);
}

Settings TrainingRun::settings() const {
  Settings all = settings_of(options_.config);
  const auto set = [&all](const char* name, const auto& value) { all[name] = fmt::format("{}", value); };
  set("run.steps", options_.steps);
  set("run.batch", options_.batch);
  set("run.seq", options_.seq);
  set("run.seed", options_.seed);
  set("run.precision", to_string(options_.model.precision));
  set("run.variant", to_string(options_.model.variant));
  set("run.device", std::string(to_string(model_.stream().kind)));
  set("run.attention", options_.model.attention);
  set("run.max_norm", options_.max_norm);
  set("run.lr.largest", options_.schedule.largest);
  set("run.lr.smallest", options_.schedule.smallest);
  set("run.lr.warmup", options_.schedule.warmup);
  set("run.lr.cycle", options_.schedule.cycle);
  set("run.adamw.beta1", options_.adamw.beta1);
  set("run.adamw.beta2", options_.adamw.beta2);
  set("run.adamw.eps", options_.adamw.eps);
  set("run.adamw.eps_mode", options_.adamw.eps_mode == adamw::EpsMode::corrected ? "corrected" : "uncorrected");
  set("run.adamw.decay", options_.adamw.decay_order == adamw::DecayOrder::before ? "before" : "after");
  set("run.adamw.weight_decay", options_.adamw.weight_decay);
  set("run.text", text_->fingerprint());
  return all;
}

void TrainingRun::save(const std::filesystem::path& path) const {
  save_checkpoint(path, model_.parameters(), state_, settings());
}

void TrainingRun::resume(const std::filesystem::path& path) {
  const TrainingState state = load_checkpoint(path, model_.parameters(), settings());
  state_ = state;
  if (state.scaler) scaler_ = LossScaler({}, *state.scaler);
}

double unigram_entropy(const TokenFile& text, std::int64_t vocab) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocab), 0), piece;
  constexpr std::int64_t kPiece = 1 << 16;
  for (std::int64_t at = 0; at < text.size(); at += kPiece) {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, text.size() - at)));
    text.read(at, piece, vocab);
    for (const std::int64_t id : piece) ++counts[static_cast<std::size_t>(id)];
  }
  double entropy = 0;
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(text.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

}  // namespace syslab::train
