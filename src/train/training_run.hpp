// A training run from its first step to its last, and from where it was saved: text in, weights and a loss a step out.
//
//   const TokenFile text("book.txt");
//   TrainingRun run({.config = config, .steps = 1000, .schedule = {1e-3, 1e-4, 100, 1000}}, text, stream);
//   while (!run.is_done()) log(run.next().loss);
//   run.save("weights.safetensors");
//
// The first nine tenths of the tokens are learned from, the rest is kept for validation. A run resumed from a file goes
// on bit for bit as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "train/batches.hpp"
#include "train/checkpoint.hpp"
#include "train/schedule.hpp"
#include "train/step.hpp"
#include "train/token_file.hpp"

namespace syslab::train {

struct RunOptions {
  model::ModelConfig config;
  model::TransformerOptions model;
  std::int64_t batch = 8, seq = 64;
  std::int64_t steps = 400;
  CosineSchedule schedule;
  adamw::Options adamw;
  double max_norm = 1;     // gradients are scaled down to this global norm
  std::uint64_t seed = 0;  // of the weights and of the batches
};

struct RunStep {
  std::int64_t step = 0;  // from 0
  double loss = 0;        // in nats a token
  double gradient_norm = 0, learning_rate = 0;
  bool skipped = false;  // fp16: the gradients overflowed, the scale fell, the batch was drawn in vain
};

class TrainingRun {
 public:
  // Draws weights. `text` outlives it. Error(usage) for options that cannot be and for a text too short for a window on
  // either side of the cut, or with an id outside the vocabulary.
  TrainingRun(const RunOptions& options, const TokenFile& text, device::Stream stream);

  const RunOptions& options() const { return options_; }
  const TrainingState& state() const { return state_; }
  bool is_done() const { return state_.step >= options_.steps; }
  model::Transformer& model() { return model_; }

  // The next step. Waits for it. Error(check) if the loss or a gradient is not finite (except in fp16, where the loss
  // scale handles overflow), with the first such tensor; weights stay as they were before it.
  RunStep next();

  // The mean loss over batches of the tokens that are kept back, the same at every call.
  double validation_loss(std::int64_t batches);

  // All that decides how the run goes on.
  Settings settings() const;
  void save(const std::filesystem::path& path) const;
  // Error(usage) for a file that is not this run's, naming what differs; nothing has changed then.
  void resume(const std::filesystem::path& path);

 private:
  bool scales_loss() const { return options_.model.precision == model::Precision::fp16_amp; }
  [[noreturn]] void report_non_finite(double loss);

  RunOptions options_;
  const TokenFile* text_;
  model::Transformer model_;
  TrainingStep step_;
  std::int64_t cut_;  // the first token of validation
  TokenBatches learned_, kept_back_;
  LossScaler scaler_;
  TrainingState state_;
};

// Error(usage) for what a run would refuse before its first step, without its model: options that cannot be, and a text
// too short for them. Tokens are not looked at.
void check_run(const RunOptions& options, const TokenFile& text);

// Entropy of the frequencies of single tokens, in nats: the loss of a model that knows nothing but them.
double unigram_entropy(const TokenFile& text, std::int64_t vocab);

}  // namespace syslab::train
