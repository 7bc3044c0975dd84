// Activation checkpointing: the same bits from less memory, and which activations are kept, made again and counted.
#include "model/recompute.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "device/memory_log.hpp"
#include "tests/model/model_fixture.hpp"
#include "tests/model/refusal.hpp"

namespace syslab::model {
namespace {

using test::refuses;

constexpr std::int64_t kLayers = 4;

ModelConfig four_blocks() {
  ModelConfig config = tiny_config();
  config.layers = kLayers;
  return config;
}

Transformer model_with(double blocks, Precision precision = Precision::fp32, Variant variant = Variant::fused) {
  Transformer model(four_blocks(), {.precision = precision, .variant = variant, .recompute = segments_of(blocks)}, {});
  set_weights(model);
  return model;
}

Sequences batch() { return random_sequences(four_blocks(), 2, 32); }

TEST(Segments, CoverTheModelAndOnlyTheLastIsKeptWhole) {
  for (std::int64_t layers = 1; layers <= 9; ++layers) {
    for (std::int64_t size = 0; size <= 2 * layers + 1; ++size) {
      const Recompute recompute{size};
      std::int64_t end = 0, run = 0;
      for (std::int64_t half = 0; half < 2 * layers; ++half) {
        const Segment segment = segment_of(recompute, layers, half);
        ASSERT_TRUE(segment.first <= half && half < segment.end);
        const bool begins = segment.first == half, is_last = segment.end == 2 * layers;
        EXPECT_TRUE(is_last || segment.size() == size);
        if (begins) {
          EXPECT_EQ(segment.first, end) << "no gap";
          end = segment.end;
        }
        EXPECT_EQ(kept_of(recompute, layers, half),
                  is_last ? Kept::everything : (begins ? Kept::stream : Kept::nothing));
        run += is_last ? 1 : 2;
      }
      EXPECT_EQ(end, 2 * layers);
      EXPECT_EQ(half_blocks_forward(recompute, layers), run) << layers << " blocks, " << to_string(recompute);
    }
  }
}

TEST(Segments, AreOfWholeAndHalfBlocks) {
  EXPECT_EQ(segments_of(0), Recompute{});
  EXPECT_EQ(segments_of(0.5), Recompute{1});
  EXPECT_EQ(segments_of(4), Recompute{8});
  EXPECT_EQ(to_string(segments_of(1.5)), "segments of 1.5 blocks");
  for (const double wrong : {0.3, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(refuses([&] { static_cast<void>(segments_of(wrong)); }, "whole or half numbers")) << wrong;
  }
}

class Recomputed : public ::testing::TestWithParam<std::tuple<Precision, Variant>> {};

TEST_P(Recomputed, GivesTheBitsOfKeptActivations) {
  const auto [precision, variant] = GetParam();
  Transformer keeps = model_with(0, precision, variant);
  const Outcome expected = outcome_of(keeps, batch());
  EXPECT_EQ(keeps.half_blocks_forward(), 2 * kLayers);
  for (const double blocks : {0.5, 1.0, 1.5, 3.0, 32.0}) {
    Transformer model = model_with(blocks, precision, variant);
    const Outcome found = outcome_of(model, batch());
    EXPECT_EQ(found.loss, expected.loss) << blocks;
    EXPECT_EQ(found.logits, expected.logits) << blocks;
    EXPECT_EQ(found.gradients, expected.gradients) << blocks;
    EXPECT_EQ(model.half_blocks_forward(), half_blocks_forward(segments_of(blocks), kLayers)) << blocks;
  }
}

// Who updates it then is in nobody's way (GradFinal).
TEST_P(Recomputed, ReadsNoWeightWhoseGradientIsFinal) {
  const auto [precision, variant] = GetParam();
  Transformer keeps = model_with(0, precision, variant);
  const Outcome expected = outcome_of(keeps, batch());
  for (const double blocks : {0.0, 0.5, 1.5}) {
    for (const bool keeps_all : {true, false}) {
      Transformer model(
          four_blocks(),
          {.precision = precision, .variant = variant, .recompute = segments_of(blocks), .keeps_all = keeps_all}, {});
      set_weights(model);
      const auto spoil = [&](int parameter, device::Stream) {
        const TensorView weights = model.parameters().view(Plane::weight, parameter);
        device::fill_bytes(weights.data, 0xff, static_cast<std::size_t>(weights.elements()) * size_of(weights.dtype),
                           {});
      };
      EXPECT_EQ(outcome_of(model, batch(), {.grad_final = spoil}).gradients, expected.gradients) << blocks;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Recomputed,
                         ::testing::Combine(::testing::Values(Precision::fp64, Precision::fp32),
                                            ::testing::Values(Variant::eager, Variant::fused, Variant::graph)),
                         [](const auto& info) {
                           return std::string(to_string(std::get<0>(info.param))) + "_" +
                                  std::string(to_string(std::get<1>(info.param)));
                         });

TEST(Recompute, KeepsTheStreamAtEachSegmentAndTheLastSegmentWhole) {
  Transformer model = model_with(1);
  const Uploaded uploaded(batch(), {});
  const Activations kept = model.forward(uploaded.tokens());
  std::multiset<std::string> of_blocks;
  for (const KeptTensor& one : listed(kept)) {
    if (one.name.starts_with("layers.")) of_blocks.insert(one.name);
    EXPECT_GT(one.bytes(), 0U) << one.name;
  }
  for (const char* stream : {"layers.0.ln1.residual", "layers.1.ln1.residual", "layers.2.ln1.residual"}) {
    EXPECT_EQ(of_blocks.erase(stream), 1U) << stream;
  }
  EXPECT_TRUE(std::ranges::all_of(of_blocks, [](const std::string& name) { return name.starts_with("layers.3."); }));
  EXPECT_TRUE(of_blocks.contains("layers.3.attn.qkv") && of_blocks.contains("layers.3.ffn.gate_up"));

  Transformer other = model_with(0);
  EXPECT_EQ(listed(other.forward(uploaded.tokens())).size(), listed(kept).size() - 3 + 3 * of_blocks.size());
}

// What norms give and the gate's output are made again without being asked for, but in `eager`.
TEST_P(Recomputed, FromTheStreamAndTheGateAloneGivesTheBitsOfKeptActivationsToo) {
  const auto [precision, variant] = GetParam();
  for (const double blocks : {0.0, 1.0}) {
    std::vector<Outcome> found;
    for (const bool keeps_all : {true, false}) {
      Transformer model(
          four_blocks(),
          {.precision = precision, .variant = variant, .recompute = segments_of(blocks), .keeps_all = keeps_all}, {});
      set_weights(model);
      const Uploaded uploaded(batch(), {});
      const std::vector<KeptTensor> kept = listed(model.forward(uploaded.tokens()));
      const bool has_all = keeps_all || variant == Variant::eager;
      for (const char* name : {"layers.3.ln1.normalized", "layers.3.ln2.normalized", "layers.3.ffn.gated"}) {
        EXPECT_EQ(std::ranges::any_of(kept, [&](const KeptTensor& one) { return one.name == name; }), has_all) << name;
      }
      outcome_of(model, random_sequences(four_blocks(), 2, 32, 8));
      found.push_back(outcome_of(model, batch(), {.add = true, .grad_final = {}}));
    }
    EXPECT_EQ(found[0].logits, found[1].logits) << blocks;
    EXPECT_EQ(found[0].gradients, found[1].gradients) << blocks;
  }
}

std::size_t bytes_of_blocks(const Activations& kept) {
  std::size_t bytes = 0;
  for (const KeptTensor& one : listed(kept)) bytes += one.name.starts_with("layers.") ? one.bytes() : 0;
  return bytes;
}

// (n/k − 1)·c + k·R
TEST(Recompute, KeepsTheBytesOfTheFormula) {
  const Uploaded uploaded(batch(), {});
  const std::size_t block = bytes_of_blocks(model_with(0).forward(uploaded.tokens())) / kLayers;
  const std::size_t stream = 2 * 32 * 64 * sizeof(float);
  for (const std::size_t k : {1U, 2U, 4U}) {
    EXPECT_EQ(bytes_of_blocks(model_with(static_cast<double>(k)).forward(uploaded.tokens())),
              (kLayers / k - 1) * stream + k * block)
        << k;
  }
}

// Half a block is no better than a whole one here: of a block the backward pass has given back the feed-forward's part
// before attention's needs its memory, and there are twice as many streams.
TEST(Recompute, HoldsLessTheShorterTheSegmentsAndGivesAllBack) {
  device::MemoryLog& log = device::MemoryLog::global();
  double last = 0;
  for (const double blocks : {1.0, 2.0, 4.0}) {
    Transformer model = model_with(blocks);
    const std::int64_t before = log.live_bytes();
    log.reset_peak();
    outcome_of(model, batch());
    const double peak = static_cast<double>(log.peak_bytes() - before);
    EXPECT_EQ(log.live_bytes(), before) << blocks;
    EXPECT_GT(peak, 1.05 * last) << blocks;
    last = peak;
  }
}

TEST(Recompute, EveryGradientIsFinalExactlyOnceAndThenNeverTouched) {
  Transformer model = model_with(1);
  const Outcome expected = outcome_of(model, batch());
  const ParameterLayout& layout = model.parameters().layout();
  std::vector<int> order;
  BackwardOptions options;
  options.grad_final = [&](int parameter, device::Stream) {
    order.push_back(parameter);
    EXPECT_EQ(model.parameters().read(Plane::gradient, parameter), expected.gradients.at(layout.info(parameter).name));
  };
  outcome_of(model, batch(), options);
  EXPECT_EQ(order, std::vector<int>(layout.arena_order().begin(), layout.arena_order().end()));
}

TEST(Recompute, AddsToGradientsThatAreThere) {
  const Sequences first = batch(), second = random_sequences(four_blocks(), 2, 32, 8);
  const auto summed = [&](double blocks) {
    Transformer model = model_with(blocks);
    outcome_of(model, first);
    return outcome_of(model, second, {.add = true, .grad_final = {}}).gradients;
  };
  EXPECT_EQ(summed(0.5), summed(0));
}

// An observer is told of what is made again with the values of the first time.
TEST(Recompute, TellsItsObserverOfWhatIsMadeAgain) {
  Transformer model = model_with(2);
  std::map<std::string, std::vector<std::vector<double>>> seen;
  model.observe(
      [&](const std::string& name, const ConstTensorView& tensor) { seen[name].push_back(values_of(tensor, {})); });
  outcome_of(model, batch());
  for (const char* again :
       {"layers.0.ln1.residual", "layers.0.attn.out", "layers.2.ln1.normalized", "layers.1.ffn.gated"}) {
    ASSERT_EQ(seen[again].size(), 2U) << again;
    EXPECT_EQ(seen[again][0], seen[again][1]) << again;
  }
  // By the segment's forward pass, and by the layers' backward passes.
  for (const char* twice : {"layers.0.ln1.normalized", "layers.1.ln2.normalized", "layers.0.ffn.gated"}) {
    ASSERT_EQ(seen[twice].size(), 3U) << twice;
    EXPECT_EQ(seen[twice][0], seen[twice][1]) << twice;
    EXPECT_EQ(seen[twice][0], seen[twice][2]) << twice;
  }
  for (const char* once : {"embedding", "layers.1.ffn.out", "layers.2.attn.qkv", "layers.3.ffn.out", "logits"}) {
    EXPECT_EQ(seen[once].size(), 1U) << once;
  }
}

TEST(Recompute, ChangesNoForwardPassThatKeepsNothing) {
  Transformer model = model_with(1), other = model_with(0);
  const Uploaded uploaded(batch(), {});
  const Activations bare = model.forward(uploaded.tokens(), Keep::nothing);
  EXPECT_EQ(values_of(bare.logits, {}), values_of(other.forward(uploaded.tokens()).logits, {}));
  EXPECT_TRUE(bare.blocks.empty());
}

}  // namespace
}  // namespace syslab::model
