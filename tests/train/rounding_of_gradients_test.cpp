// Gradients in fp32 beside exact ones: no element is off by more than its bound, and some by much of it.
#include "train/rounding_of_gradients.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/initialise.hpp"
#include "tests/model/model_fixture.hpp"

namespace syslab::train {
namespace {

using model::Transformer;

model::ModelConfig small(std::int64_t vocab, std::int64_t context) {
  model::ModelConfig config = model::tiny_config();
  config.vocab = vocab, config.context = context;
  return model::reduced(config);
}

ByParameter gradients(Transformer& model, const model::Sequences& batch, bool of_targets = false) {
  const model::Uploaded uploaded(batch, {});
  model::Activations kept = model.forward(uploaded.tokens());
  model.loss_and_gradient(kept, uploaded.targets(), {});
  if (of_targets) model::leave_targets(kept.logits, batch.targets);
  model.backward(std::move(kept), {});
  ByParameter made;
  for (int i = 0; i < model.parameters().layout().size(); ++i) {
    made.push_back(model.parameters().read(model::Plane::gradient, i));
  }
  return made;
}

ExactPass exact_pass(const model::ModelConfig& config, const model::Sequences& batch, std::uint64_t seed) {
  ExactPass exact;
  Transformer model(config, {.precision = model::Precision::fp64, .plant = model::recording_queries(exact.queries)},
                    {});
  model::initialise(model.parameters(), seed);
  exact.positions = batch.batch * batch.seq;
  for (int i = 0; i < model.parameters().layout().size(); ++i) {
    exact.weights.push_back(model.parameters().read(model::Plane::weight, i));
  }
  exact.of_targets = gradients(model, batch, true);
  exact.queries.clear();
  exact.gradients = gradients(model, batch);
  return exact;
}

// The largest |found − exact| / ρ of all elements and seeds.
double largest_ratio(const model::ModelConfig& config, model::Variant variant) {
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const model::Sequences batch = model::random_sequences(config, 2, config.context, seed);
    const ExactPass exact = exact_pass(config, batch, seed);
    Transformer model(config, {.variant = variant}, {});
    model::initialise(model.parameters(), seed);
    const ByParameter found = gradients(model, batch);
    const ByParameter rounding = rounding_of_gradients(model.parameters().layout(), exact, model.options());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t count = found[i].size() / rounding[i].size();
      for (std::size_t n = 0; n < found[i].size(); ++n) {
        const double apart = std::abs(found[i][n] - exact.gradients[i][n]);
        if (apart != 0) largest = std::max(largest, apart / rounding[i][n / count]);
      }
    }
  }
  return largest;
}

TEST(RoundingOfGradients, IsNotExceededAndNotFarOff) {
  for (const auto& [vocab, context] : {std::pair{101, 12}, {101, 1}, {2, 2}, {2, 1}, {8, 4}}) {
    for (const model::Variant variant : {model::Variant::fused, model::Variant::eager}) {
      const double ratio = largest_ratio(small(vocab, context), variant);
      EXPECT_LE(ratio, 1) << vocab << " " << context;
      EXPECT_GT(ratio, 0.1) << vocab << " " << context;
    }
  }
}

TEST(RoundingOfGradients, IsNothingOfATokenThatIsNotThere) {
  const model::ModelConfig config = small(101, 4);
  const model::Sequences batch = model::random_sequences(config, 2, 4);
  const model::ParameterLayout layout(config);
  const ByParameter rounding = rounding_of_gradients(layout, exact_pass(config, batch, 1), {});
  for (std::int64_t token = 0; token < config.vocab; ++token) {
    const bool there = std::ranges::find(batch.ids, token) != batch.ids.end();
    EXPECT_EQ(rounding[static_cast<std::size_t>(layout.embedding())][static_cast<std::size_t>(token)] > 0, there);
  }
}

TEST(RoundingOfGradients, IsWhatVanishesAloneWhereTolerancesAreWide) {
  const auto count = [](std::int64_t vocab, std::int64_t context, model::Precision precision) {
    const model::ModelConfig config = small(vocab, context);
    const model::Sequences batch = model::random_sequences(config, 2, context);
    const ByParameter rounding =
        rounding_of_gradients(model::ParameterLayout(config), exact_pass(config, batch, 1), {.precision = precision});
    return std::ranges::count_if(rounding, [](const auto& one) { return std::ranges::max(one) > 0; });
  };
  for (const model::Precision precision : {model::Precision::tf32, model::Precision::bf16_amp}) {
    EXPECT_EQ(count(101, 12, precision), 0);
    EXPECT_EQ(count(101, 1, precision), 4) << "Q and K of two layers";
    EXPECT_EQ(count(1, 4, precision), 21) << "all";
  }
  EXPECT_EQ(count(101, 12, model::Precision::fp32), 21);
}

}  // namespace
}  // namespace syslab::train
