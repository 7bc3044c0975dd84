// Laws of the model over random shapes: the reference against plain loops, its gradient against their slope.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <functional>

#include "tests/laws/expect_law.hpp"
#include "tests/model/model_fixture.hpp"

namespace syslab::model {
namespace {

struct Sample {
  ModelConfig config;
  Sequences sequences;
  std::uint64_t seed = 0;
};

Sample draw_sample() {
  const auto size = [](const char* name, int last) {
    return static_cast<std::int64_t>(*rc::gen::inRange(1, last + 1).as(name));
  };
  Sample made;
  ModelConfig& config = made.config;
  config.layers = size("layers", 3);
  config.heads = size("heads", 3);
  config.d_model = config.heads * 2 * size("half of the head dimension", 9);
  config.d_ff = size("d_ff", 40);
  config.vocab = size("vocab", 50);
  config.context = size("context", 20);
  if (*rc::gen::inRange(0, 4).as("positions unless 0") == 0) config.rope_theta.reset();
  config.handout = *rc::gen::inRange(0, 2).as("hand-out 2025 + this") == 0 ? Handout::y2025 : Handout::y2026;
  const std::int64_t seq = std::min(config.context, size("sequence", 20));
  made.seed = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1000).as("seed"));
  made.sequences = random_sequences(config, size("batch", 3), seq, made.seed);
  return made;
}

using Values = std::map<std::string, std::vector<double>>;

Values weights_for(const Sample& sample) {
  Values weights;
  const ParameterLayout layout(sample.config);
  for (const ParameterInfo& info : layout.infos()) weights[info.name] = weights_of(info, sample.seed);
  return weights;
}

double plain_loss(const Sample& sample, const Values& weights) {
  const auto by_name = [&weights](const std::string& name) -> const std::vector<double>& { return weights.at(name); };
  const Sequences& all = sample.sequences;
  double total = 0;
  for (std::int64_t b = 0; b < all.batch; ++b) {
    const auto part = [&](const std::vector<std::int64_t>& ids) {
      return std::vector<std::int64_t>(ids.begin() + b * all.seq, ids.begin() + (b + 1) * all.seq);
    };
    total += plain::loss(plain::logits(sample.config, by_name, part(all.ids)), part(all.targets));
  }
  return total / static_cast<double>(all.batch);
}

Outcome outcome_in(const Sample& sample, Precision precision, Variant variant = Variant::fused) {
  Transformer model(sample.config, {.precision = precision, .variant = variant}, {});
  set_weights(model, sample.seed);
  return outcome_of(model, sample.sequences);
}

TEST(TransformerLaws, TheReferencesLossIsThatOfPlainLoops) {
  property::expect_law("model.loss", 60, [](check::Observation&) {
    const Sample sample = draw_sample();
    RC_ASSERT(std::abs(outcome_in(sample, Precision::fp64).loss - plain_loss(sample, weights_for(sample))) < 1e-11);
  });
}

// One direction through all parameters at once: a gradient that is wrong anywhere shows.
TEST(TransformerLaws, TheReferencesGradientIsTheSlopeOfPlainLoops) {
  property::expect_law("model.gradient", 60, [](check::Observation&) {
    const Sample sample = draw_sample();
    const Outcome outcome = outcome_in(sample, Precision::fp64);
    Values above = weights_for(sample), below = above;
    constexpr double kStep = 1e-5;
    double slope = 0, size = 0;
    for (auto& [name, values] : above) {
      const RandomStream direction = RandomStream::derive(sample.seed, "transformer_laws", name, "direction");
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double along = direction.normal(i);
        slope += along * outcome.gradients.at(name)[i];
        size += along * along * outcome.gradients.at(name)[i] * outcome.gradients.at(name)[i];
        values[i] += kStep * along;
        below.at(name)[i] -= kStep * along;
      }
    }
    const double found = (plain_loss(sample, above) - plain_loss(sample, below)) / (2 * kStep);
    // Truncation: the third derivative along a direction of some ten standard deviations, times step².
    RC_ASSERT(std::abs(found - slope) < 1e-5 * (1 + std::sqrt(size)));
  });
}

TEST(TransformerLaws, Fp32StaysWithTheReferenceInEveryShape) {
  property::expect_law("model.fp32", 60, [](check::Observation&) {
    const Sample sample = draw_sample();
    const Outcome expected = outcome_in(sample, Precision::fp64);
    const Variant variant = *rc::gen::inRange(0, 2).as("fused unless 0") == 0 ? Variant::eager : Variant::fused;
    const Outcome found = outcome_in(sample, Precision::fp32, variant);
    RC_ASSERT(relative_distance(found.logits, expected.logits) < 1e-5);
    // All parameters together: alone, one whose gradient is nearly 0 has nothing to be relative to.
    std::vector<double> all_found, all_expected;
    for (const auto& [name, gradient] : expected.gradients) {
      all_expected.insert(all_expected.end(), gradient.begin(), gradient.end());
      all_found.insert(all_found.end(), found.gradients.at(name).begin(), found.gradients.at(name).end());
    }
    if (sample.config.vocab > 1) RC_ASSERT(relative_distance(all_found, all_expected) < 1e-4);
  });
}

TEST(TransformerLaws, LaterTokensNeverReachEarlierLogits) {
  property::expect_law("model.causal", 60, [](check::Observation&) {
    Sample sample = draw_sample();
    const std::vector<double> before = outcome_in(sample, Precision::fp32).logits;
    const std::int64_t at = *rc::gen::inRange<std::int64_t>(0, sample.sequences.seq).as("changed token");
    sample.sequences.ids[static_cast<std::size_t>(at)] =
        (sample.sequences.ids[static_cast<std::size_t>(at)] + 1) % sample.config.vocab;
    const std::vector<double> after = outcome_in(sample, Precision::fp32).logits;
    for (std::size_t i = 0; i < static_cast<std::size_t>(at * sample.config.vocab); ++i)
      RC_ASSERT(before[i] == after[i]);
  });
}

}  // namespace
}  // namespace syslab::model
