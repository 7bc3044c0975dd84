// A run that is stopped, saved and begun again from the file is the run that never stopped, bit for bit.
#include <gtest/gtest.h>

#include <cstring>

#include "model/initialise.hpp"
#include "tests/temporary_folder.hpp"
#include "train/batches.hpp"
#include "train/checkpoint.hpp"
#include "train/schedule.hpp"
#include "train/step.hpp"

namespace syslab::train {
namespace {

using model::Plane;
using model::Precision;

constexpr CosineSchedule kSchedule{.largest = 1e-2, .smallest = 1e-3, .warmup = 2, .cycle = 8};
constexpr std::int64_t kRows = 2, kContext = 16, kBytes = 256;

model::ModelConfig byte_model() {
  model::ModelConfig config = model::find_model("tiny");
  config.vocab = kBytes;
  config.context = kContext;
  return config;
}

struct Way {
  Precision precision;
  bool scaled;  // the loss is multiplied as fp16 needs it, which any precision bears
};

std::string to_string(const Way& way) {
  return std::string(model::to_string(way.precision)) + (way.scaled ? "_scaled" : "");
}

// A model on its way through a text: what a training loop keeps between two steps, and nothing else.
class Training {
 public:
  Training(const TokenFile& text, const Way& way)
      : model_(byte_model(), {.precision = way.precision}, {}),
        step_(model_, {.optimizer = {.max_norm = 1.0, .skip_non_finite = way.scaled}}, kRows, kContext),
        batches_(text, {.rows = kRows, .context = kContext, .vocab = kBytes, .seed = 5}) {
    if (way.scaled) scaler_.emplace(LossScalerOptions{.growth_interval = 3});
    model::initialise(model_.parameters(), 5);
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      Batch batch;
      batches_.draw(state_.next_batch++, batch);
      step_.load(0, batch.x, batch.y);
      step_.run(kSchedule.at(state_.step), scaler_ ? scaler_->scale() : 1.0);
      const bool skipped = step_.result().skipped;
      if (scaler_) scaler_->update(skipped);
      ++state_.step;
    }
  }

  void save(const std::filesystem::path& path) {
    if (scaler_) state_.scaler = scaler_->state();
    save_checkpoint(path, model_.parameters(), state_, settings_of(byte_model()));
  }
  void resume(const std::filesystem::path& path) {
    state_ = load_checkpoint(path, model_.parameters(), settings_of(byte_model()));
    step_.optimizer().set_steps(state_.step);
    if (state_.scaler) scaler_.emplace(LossScalerOptions{.growth_interval = 3}, *state_.scaler);
  }

 private:
  model::Transformer model_;
  TrainingStep step_;
  TokenBatches batches_;
  std::optional<LossScaler> scaler_;
  TrainingState state_;
};

class Resume : public ::testing::TestWithParam<Way> {};

TEST_P(Resume, GoesOnBitForBit) {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * i) + " of a text\n";
  test::write_bytes(folder / "text", text);
  const TokenFile tokens(folder / "text");

  Training whole(tokens, GetParam());
  whole.train(3);
  whole.save(folder / "three");
  whole.train(4);
  whole.save(folder / "seven");

  Training resumed(tokens, GetParam());
  resumed.resume(folder / "three");
  resumed.train(4);
  resumed.save(folder / "resumed");
  EXPECT_TRUE(test::bytes_of(folder / "seven") == test::bytes_of(folder / "resumed"));
  EXPECT_FALSE(test::bytes_of(folder / "seven") == test::bytes_of(folder / "three"));
}

INSTANTIATE_TEST_SUITE_P(Ways, Resume,
                         ::testing::Values(Way{Precision::fp64, false}, Way{Precision::fp32, false},
                                           Way{Precision::fp32, true}),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace syslab::train
