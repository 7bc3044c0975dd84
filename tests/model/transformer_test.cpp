// The model against a plain loop in double precision, against finite differences, and against itself.
#include "model/transformer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device/memory_log.hpp"
#include "tests/model/model_fixture.hpp"
#include "tests/model/refusal.hpp"

namespace syslab::model {
namespace {

using test::refuses;

Transformer tiny(Precision precision, Variant variant = Variant::fused, ModelConfig config = tiny_config()) {
  Transformer model(config, {.precision = precision, .variant = variant}, {});
  set_weights(model);
  return model;
}

// Weights for the plain loops; those of `changed` with one element moved.
class PlainWeights {
 public:
  explicit PlainWeights(const ModelConfig& config) {
    const ParameterLayout layout(config);
    for (const ParameterInfo& info : layout.infos()) values_[info.name] = weights_of(info);
  }
  double& at(const std::string& name, std::size_t index) { return values_.at(name)[index]; }
  const std::vector<double>& operator()(const std::string& name) const { return values_.at(name); }

 private:
  std::map<std::string, std::vector<double>> values_;
};

std::vector<std::int64_t> sequence(const std::vector<std::int64_t>& ids, std::int64_t which, std::int64_t seq) {
  return {ids.begin() + which * seq, ids.begin() + (which + 1) * seq};
}

double plain_loss(const ModelConfig& config, const PlainWeights& weights, const Sequences& sequences) {
  double total = 0;
  for (std::int64_t b = 0; b < sequences.batch; ++b) {
    const plain::Matrix logits = plain::logits(config, std::cref(weights), sequence(sequences.ids, b, sequences.seq));
    total += plain::loss(logits, sequence(sequences.targets, b, sequences.seq));
  }
  return total / static_cast<double>(sequences.batch);
}

class InBothHandouts : public ::testing::TestWithParam<Handout> {
 protected:
  ModelConfig config() const {
    ModelConfig config = tiny_config();
    config.handout = GetParam();
    return config;
  }
};

TEST_P(InBothHandouts, ReferenceLogitsAreThoseOfPlainLoops) {
  Transformer model = tiny(Precision::fp64, Variant::fused, config());
  const Sequences sequences = random_sequences(config(), 2, 32);
  const Outcome outcome = outcome_of(model, sequences);
  const PlainWeights weights(config());
  std::vector<double> expected;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (const auto& row : plain::logits(config(), std::cref(weights), sequence(sequences.ids, b, 32))) {
      expected.insert(expected.end(), row.begin(), row.end());
    }
  }
  ASSERT_EQ(outcome.logits.size(), expected.size());
  EXPECT_LT(relative_distance(outcome.logits, expected), 1e-13);
  EXPECT_NEAR(outcome.loss, plain_loss(config(), weights, sequences), 1e-12);
}

TEST_P(InBothHandouts, ReferenceGradientsAreFiniteDifferencesOfPlainLoops) {
  const ModelConfig config = this->config();
  Transformer model = tiny(Precision::fp64, Variant::fused, config);
  const Sequences sequences = random_sequences(config, 1, 12);
  const Outcome outcome = outcome_of(model, sequences);
  PlainWeights weights(config);
  const RandomStream random(11);
  std::uint64_t draw = 0;
  for (const ParameterInfo& info : model.parameters().layout().infos()) {
    // A few elements a tensor; of the embedding, of a row that is used.
    for (int tries = 0; tries < 3; ++tries) {
      std::size_t index = random.bits(draw++) % static_cast<std::size_t>(info.shape.elements());
      if (info.kind == ParameterKind::embedding) {
        index = static_cast<std::size_t>(sequences.ids[static_cast<std::size_t>(tries)] * config.d_model) + index % 64;
      }
      constexpr double kStep = 1e-5;
      double& weight = weights.at(info.name, index);
      const double kept = weight;
      weight = kept + kStep;
      const double above = plain_loss(config, weights, sequences);
      weight = kept - kStep;
      const double below = plain_loss(config, weights, sequences);
      weight = kept;
      // Truncation is of the order of step², rounding of 1e-16/step.
      EXPECT_NEAR(outcome.gradients.at(info.name)[index], (above - below) / (2 * kStep), 1e-9)
          << info.name << "[" << index << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Handouts, InBothHandouts, ::testing::Values(Handout::y2025, Handout::y2026),
                         [](const auto& info) { return "y" + std::string(to_string(info.param)); });

TEST(Transformer, HandoutsDifferInRawQueriesOnly) {
  ModelConfig config = tiny_config();
  const Sequences sequences = random_sequences(config, 2, 32);
  config.handout = Handout::y2025;
  Transformer before = tiny(Precision::fp64, Variant::fused, config);
  config.handout = Handout::y2026;
  Transformer after = tiny(Precision::fp64, Variant::fused, config);
  const Outcome a = outcome_of(before, sequences), b = outcome_of(after, sequences);
  EXPECT_LT(relative_distance(a.logits, b.logits), 1e-14);
  for (const auto& [name, gradient] : a.gradients) {
    EXPECT_LT(relative_distance(gradient, b.gradients.at(name)), 1e-12) << name;
  }
}

// Q and K of the first block as attention reads them, (rows, 3·d).
std::vector<double> raw_queries(ModelConfig config, std::optional<Handout> handout) {
  if (handout) {
    config.handout = *handout;
  } else {
    config.rope_theta.reset();
  }
  Transformer model = tiny(Precision::fp64, Variant::fused, config);
  std::vector<double> found;
  const Watching watching(model, [&](const std::string& name, const ConstTensorView& tensor) {
    if (name == "layers.0.attn.qkv") found = values_of(tensor, {});
  });
  const Uploaded batch(random_sequences(config, 1, 8), {});
  static_cast<void>(model.forward(batch.tokens()));
  return found;
}

// What no score, logit or gradient shows: 2025 leaves the elements of a pair side by side, 2026 puts all first ones
// before all second ones. The first position is turned by nothing.
TEST(Transformer, HandoutsLayOutRotatedQueriesAsTheySay) {
  const ModelConfig config = tiny_config();
  const std::vector<double> none = raw_queries(config, {}), interleaved = raw_queries(config, Handout::y2025),
                            halves = raw_queries(config, Handout::y2026);
  const auto d = static_cast<std::size_t>(config.d_model), dim = static_cast<std::size_t>(config.head_dim());
  ASSERT_EQ(none.size(), 8 * 3 * d);
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t head = 0; head < 2 * d; head += dim) {
      for (std::size_t pair = 0; pair < dim / 2; ++pair) {
        const std::size_t base = row * 3 * d + head;
        for (const std::size_t second : {0U, 1U}) {
          const double there = interleaved[base + 2 * pair + second];
          EXPECT_EQ(halves[base + second * dim / 2 + pair], there) << row << ", " << head << ", " << pair;
          EXPECT_EQ(there == none[base + 2 * pair + second], row == 0) << row << ", " << head << ", " << pair;
        }
      }
    }
    for (std::size_t value = 2 * d; value < 3 * d; ++value) {
      EXPECT_EQ(interleaved[row * 3 * d + value], none[row * 3 * d + value]);
    }
  }
}

TEST(Transformer, WithoutPositionsAgreesWithPlainLoopsToo) {
  ModelConfig config = tiny_config();
  config.rope_theta.reset();
  Transformer model = tiny(Precision::fp64, Variant::fused, config);
  const Sequences sequences = random_sequences(config, 1, 20);
  EXPECT_NEAR(outcome_of(model, sequences).loss, plain_loss(config, PlainWeights(config), sequences), 1e-12);
}

class Fp32Variants : public ::testing::TestWithParam<Variant> {};

// The bounds are the hand-out page's for a model of this size: logits 1e-5, gradients 1e-4, relative.
TEST_P(Fp32Variants, AgreeWithTheReference) {
  Transformer reference = tiny(Precision::fp64), model = tiny(Precision::fp32, GetParam());
  const Sequences sequences = random_sequences(tiny_config(), 2, 32);
  const Outcome expected = outcome_of(reference, sequences), found = outcome_of(model, sequences);
  EXPECT_LT(relative_distance(found.logits, expected.logits), 1e-5);
  EXPECT_NEAR(found.loss, expected.loss, 1e-5 * expected.loss);
  for (const auto& [name, gradient] : expected.gradients) {
    EXPECT_LT(relative_distance(found.gradients.at(name), gradient), 1e-4) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Fp32Variants, ::testing::Values(Variant::eager, Variant::fused),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Transformer, LaterTokensDoNotChangeEarlierLogits) {
  Transformer model = tiny(Precision::fp32);
  Sequences sequences = random_sequences(tiny_config(), 1, 32);
  const std::vector<double> before = outcome_of(model, sequences).logits;
  constexpr std::size_t kChanged = 17;
  sequences.ids[kChanged] = (sequences.ids[kChanged] + 1) % 101;
  const std::vector<double> after = outcome_of(model, sequences).logits;
  for (std::size_t i = 0; i < kChanged * 101; ++i) ASSERT_EQ(before[i], after[i]) << i;
  EXPECT_NE(before[kChanged * 101], after[kChanged * 101]);
}

TEST(Transformer, EveryGradientIsFinalExactlyOnceAndThenNeverTouched) {
  Transformer model = tiny(Precision::fp32);
  const Sequences sequences = random_sequences(tiny_config(), 2, 32);
  const Outcome expected = outcome_of(model, sequences);
  const ParameterLayout& layout = model.parameters().layout();
  std::vector<int> order;
  BackwardOptions options;
  options.grad_final = [&](int parameter, device::Stream) {
    order.push_back(parameter);
    EXPECT_EQ(model.parameters().read(Plane::gradient, parameter), expected.gradients.at(layout.info(parameter).name));
  };
  outcome_of(model, sequences, options);
  EXPECT_EQ(order, std::vector<int>(layout.arena_order().begin(), layout.arena_order().end()));
}

TEST(Transformer, AccumulatesGradientsOfParts) {
  Transformer model = tiny(Precision::fp64);
  const Sequences both = random_sequences(tiny_config(), 2, 32);
  const Outcome whole = outcome_of(model, both);
  const auto part = [&](std::int64_t which) {
    return Sequences{1, 32, sequence(both.ids, which, 32), sequence(both.targets, which, 32)};
  };
  outcome_of(model, part(0));
  const Outcome summed = outcome_of(model, part(1), {.add = true, .grad_final = {}});
  for (const auto& [name, gradient] : whole.gradients) {
    std::vector<double> twice = gradient;  // a mean over two sequences is half the sum of their means
    for (double& value : twice) value *= 2;
    EXPECT_LT(relative_distance(summed.gradients.at(name), twice), 1e-12) << name;
  }
}

TEST(Transformer, AForwardPassThatKeepsNothingGivesTheSameLogits) {
  Transformer model = tiny(Precision::fp32);
  const Sequences sequences = random_sequences(tiny_config(), 2, 32);
  const Uploaded batch(sequences, {});
  const Activations kept = model.forward(batch.tokens()), bare = model.forward(batch.tokens(), Keep::nothing);
  EXPECT_EQ(values_of(kept.logits, {}), values_of(bare.logits, {}));
  EXPECT_TRUE(bare.blocks.empty());
  EXPECT_TRUE(refuses([&] { model.backward(model.forward(batch.tokens(), Keep::nothing), {}); }, "kept"));
}

TEST(Transformer, TakesNoLogitsForTheirGradient) {
  Transformer model = tiny(Precision::fp32);
  const Sequences sequences = random_sequences(tiny_config(), 2, 32);
  const Uploaded batch(sequences, {});
  Activations kept = model.forward(batch.tokens());
  model.loss(kept, batch.targets());
  EXPECT_TRUE(refuses([&] { model.backward(std::move(kept), {}); }, "loss_and_gradient()"));
}

TEST(Transformer, GivesAllMemoryBackAfterAStep) {
  Transformer model = tiny(Precision::fp32);
  const Sequences sequences = random_sequences(tiny_config(), 2, 32);
  const std::int64_t before = device::MemoryLog::global().live_bytes();
  outcome_of(model, sequences);
  EXPECT_EQ(device::MemoryLog::global().live_bytes(), before);
}

TEST(Transformer, TellsItsObserverOfEveryTensorInOrder) {
  Transformer model = tiny(Precision::fp32);
  std::vector<std::string> names;
  model.observe([&](const std::string& name, const ConstTensorView& tensor) {
    names.push_back(name);
    EXPECT_EQ(tensor.dtype, DType::f32) << name;
    for (const double value : values_of(tensor, {})) ASSERT_TRUE(std::isfinite(value)) << name;
  });
  outcome_of(model, random_sequences(tiny_config(), 2, 32));
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "embedding");
  EXPECT_NE(std::ranges::find(names, "layers.1.ffn.gated"), names.end());
  EXPECT_LT(std::ranges::find(names, "logits"), std::ranges::find(names, "dlogits"));
}

TEST(Transformer, KernelsAreChosenAgainForAPassOfOtherSizes) {
  int chosen = 0;
  Transformer model(tiny_config(), {.plant = [&](Kernels&) { ++chosen; }}, {});
  set_weights(model);
  EXPECT_EQ(chosen, 1);
  const std::vector<std::int64_t> ids(static_cast<std::size_t>(2 * tiny_config().context), 1);
  const auto passes = [&](std::int64_t batch, std::int64_t seq) {
    model.forward({ids.data(), batch, seq}, Keep::nothing);
    return chosen;
  };
  EXPECT_EQ(passes(1, tiny_config().context), 1);
  EXPECT_EQ(passes(2, tiny_config().context), 2);
  EXPECT_EQ(passes(2, tiny_config().context), 2);
  EXPECT_EQ(passes(2, 8), 3);
}

TEST(Transformer, RefusesWhatCannotBe) {
  ModelConfig odd = tiny_config();
  odd.heads = 5;
  EXPECT_TRUE(refuses([&] { Transformer(odd, {}, {}); }, "heads"));
  EXPECT_TRUE(refuses([&] { Transformer(tiny_config(), {.precision = Precision::bf16_fused}, {}); }, "needs a GPU"));
  EXPECT_TRUE(refuses([&] { Transformer(tiny_config(), {.attention = "flash_mma"}, {}); }, "flash_mma"));
  Transformer model = tiny(Precision::fp32);
  const Sequences longer = random_sequences(tiny_config(), 1, 41);
  EXPECT_TRUE(refuses([&] { outcome_of(model, longer); }, "41", "context of 40"));
}

}  // namespace
}  // namespace syslab::model
