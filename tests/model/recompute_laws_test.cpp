// Laws of activation checkpointing over random shapes: gradients have the bits of those without.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>

#include "model/toy_stack.hpp"
#include "tests/laws/expect_law.hpp"
#include "tests/model/model_fixture.hpp"

namespace syslab::model {
namespace {

TEST(RecomputeLaws, GradientsHaveTheBitsOfKeptActivations) {
  property::expect_law("model.recompute", 60, [](check::Observation&) {
    const auto size = [](const char* name, int last) {
      return static_cast<std::int64_t>(*rc::gen::inRange(1, last + 1).as(name));
    };
    ModelConfig config;
    config.layers = size("layers", 5);
    config.heads = size("heads", 3);
    config.d_model = config.heads * 2 * size("half of the head dimension", 9);
    config.d_ff = size("d_ff", 40);
    config.vocab = size("vocab", 50);
    config.context = size("context", 20);
    const Sequences sequences =
        random_sequences(config, size("batch", 3), std::min(config.context, size("sequence", 20)));
    TransformerOptions options;
    options.precision = *rc::gen::element(Precision::fp64, Precision::fp32).as("precision");
    options.variant = *rc::gen::element(Variant::eager, Variant::fused).as("variant");
    const auto outcome = [&](Recompute recompute) {
      options.recompute = recompute;
      Transformer model(config, options, {});
      set_weights(model);
      const Outcome found = outcome_of(model, sequences);
      RC_ASSERT(model.half_blocks_forward() == half_blocks_forward(recompute, config.layers));
      return found;
    };
    const Outcome kept = outcome({}), again = outcome({size("half-blocks of a segment", 11)});
    RC_ASSERT(again.loss == kept.loss);
    RC_ASSERT(again.gradients == kept.gradients);
  });
}

TEST(RecomputeLaws, SchemesOfAStackCostWhatTheirFormulasSay) {
  property::expect_law("model.toy_stack", 60, [](check::Observation&) {
    const std::int64_t blocks = *rc::gen::inRange<std::int64_t>(1, 400).as("blocks");
    const auto seed = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1000).as("seed"));
    const std::vector<double> expected = run_toy_stack(Scheme::none, blocks, seed).gradients;
    for (const Scheme scheme : kSchemes) {
      const ToyRun run = run_toy_stack(scheme, blocks, seed);
      const SchemeCost formula = cost_of(scheme, blocks);
      RC_ASSERT(run.gradients == expected);
      RC_ASSERT(run.cost.forwards == formula.forwards);
      RC_ASSERT(run.cost.residuals == formula.residuals);
      RC_ASSERT(run.cost.streams == formula.streams ||
                (scheme == Scheme::binomial && run.cost.streams < formula.streams));
    }
  });
}

}  // namespace
}  // namespace syslab::model
