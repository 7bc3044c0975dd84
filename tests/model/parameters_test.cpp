#include "model/parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/adamw/eager.hpp"
#include "tests/model/refusal.hpp"

namespace syslab::model {
namespace {

ModelConfig two_layers() {
  ModelConfig config = find_model("tiny");
  EXPECT_EQ(config.layers, 2);
  return config;
}

// What the caption of the profile's kernels (nsys_profile/tables/kernels.sql) says of medium.
TEST(ParameterLayout, OfMediumHas219TensorsWhichTheEagerOptimizerTakesIn223Pieces) {
  const ParameterLayout layout(find_model("medium"));
  std::int64_t pieces = 0;
  for (int index = 0; index < layout.size(); ++index) {
    pieces += (layout.info(index).shape.elements() + adamw::kEagerPiece - 1) / adamw::kEagerPiece;
  }
  EXPECT_EQ(layout.size(), 219);
  EXPECT_EQ(pieces, 223);
  EXPECT_EQ(adamw::kEagerPiece, 4'194'304);
}

TEST(ParameterLayout, NamesAreInRegistrationOrder) {
  const std::vector<std::string> expected = {
      "token_embeddings.weight",
      "layers.0.attn.q_proj.weight",
      "layers.0.attn.k_proj.weight",
      "layers.0.attn.v_proj.weight",
      "layers.0.attn.output_proj.weight",
      "layers.0.ffn.w1.weight",
      "layers.0.ffn.w2.weight",
      "layers.0.ffn.w3.weight",
      "layers.0.ln1.weight",
      "layers.0.ln2.weight",
      "layers.1.attn.q_proj.weight",
      "layers.1.attn.k_proj.weight",
      "layers.1.attn.v_proj.weight",
      "layers.1.attn.output_proj.weight",
      "layers.1.ffn.w1.weight",
      "layers.1.ffn.w2.weight",
      "layers.1.ffn.w3.weight",
      "layers.1.ln1.weight",
      "layers.1.ln2.weight",
      "ln_final.weight",
      "lm_head.weight",
  };
  EXPECT_EQ(ParameterLayout(two_layers()).names(), expected);
}

TEST(ParameterLayout, ShapesAreOutByIn) {
  const ParameterLayout layout(two_layers());
  const auto shape = [&](const char* name) { return layout.info(layout.index_of(name)).shape; };
  EXPECT_EQ(shape("token_embeddings.weight"), (Shape{101, 64}));
  EXPECT_EQ(shape("layers.1.attn.q_proj.weight"), (Shape{64, 64}));
  EXPECT_EQ(shape("layers.1.ffn.w1.weight"), (Shape{128, 64}));
  EXPECT_EQ(shape("layers.1.ffn.w2.weight"), (Shape{64, 128}));
  EXPECT_EQ(shape("layers.1.ffn.w3.weight"), (Shape{128, 64}));
  EXPECT_EQ(shape("ln_final.weight"), (Shape{64}));
  EXPECT_EQ(shape("lm_head.weight"), (Shape{101, 64}));
}

TEST(ParameterLayout, IndicesOfALayerPointAtItsTensors) {
  const ParameterLayout layout(two_layers());
  const LayerIndices at = layout.layer(1);
  const auto name = [&](int index) { return layout.info(index).name; };
  EXPECT_EQ(name(at.q), "layers.1.attn.q_proj.weight");
  EXPECT_EQ(name(at.k), "layers.1.attn.k_proj.weight");
  EXPECT_EQ(name(at.v), "layers.1.attn.v_proj.weight");
  EXPECT_EQ(name(at.output), "layers.1.attn.output_proj.weight");
  EXPECT_EQ(name(at.w1), "layers.1.ffn.w1.weight");
  EXPECT_EQ(name(at.w2), "layers.1.ffn.w2.weight");
  EXPECT_EQ(name(at.w3), "layers.1.ffn.w3.weight");
  EXPECT_EQ(name(at.ln1), "layers.1.ln1.weight");
  EXPECT_EQ(name(at.ln2), "layers.1.ln2.weight");
  EXPECT_EQ(name(layout.embedding()), "token_embeddings.weight");
  EXPECT_EQ(name(layout.ln_final()), "ln_final.weight");
  EXPECT_EQ(name(layout.lm_head()), "lm_head.weight");
  EXPECT_EQ(layout.info(at.ln2).layer, 1);
  EXPECT_EQ(layout.info(at.ln2).kind, ParameterKind::norm);
  EXPECT_EQ(layout.info(layout.embedding()).kind, ParameterKind::embedding);
  EXPECT_EQ(layout.info(layout.lm_head()).layer, -1);
}

TEST(ParameterLayout, TheArenaBeginsWithTheGradientThatIsFinalFirst) {
  const ParameterLayout layout(two_layers());
  std::vector<std::string> names;
  for (const int index : layout.arena_order()) names.push_back(layout.info(index).name);
  const std::vector<std::string> expected = {
      "lm_head.weight",
      "ln_final.weight",
      "layers.1.ffn.w2.weight",
      "layers.1.ffn.w1.weight",
      "layers.1.ffn.w3.weight",
      "layers.1.ln2.weight",
      "layers.1.attn.output_proj.weight",
      "layers.1.attn.q_proj.weight",
      "layers.1.attn.k_proj.weight",
      "layers.1.attn.v_proj.weight",
      "layers.1.ln1.weight",
      "layers.0.ffn.w2.weight",
      "layers.0.ffn.w1.weight",
      "layers.0.ffn.w3.weight",
      "layers.0.ln2.weight",
      "layers.0.attn.output_proj.weight",
      "layers.0.attn.q_proj.weight",
      "layers.0.attn.k_proj.weight",
      "layers.0.attn.v_proj.weight",
      "layers.0.ln1.weight",
      "token_embeddings.weight",
  };
  EXPECT_EQ(names, expected);
}

// Sizes whose tensors fill no whole number of aligned pieces: 101 × 9, 9 × 9, 5 × 9, 9.
TEST(ParameterLayout, BracketsHaveNoPaddingInsideAndBeginAligned) {
  ModelConfig config = two_layers();
  config.d_model = 9;
  config.d_ff = 5;
  config.heads = 3;
  config.rope_theta = std::nullopt;
  const ParameterLayout layout(config);
  for (std::int64_t number = 0; number < config.layers; ++number) {
    const LayerIndices at = layout.layer(number);
    EXPECT_EQ(layout.offset(at.k), layout.offset(at.q) + 81);
    EXPECT_EQ(layout.offset(at.v), layout.offset(at.q) + 162);
    EXPECT_EQ(layout.offset(at.w3), layout.offset(at.w1) + 45);
    for (const int index : {at.q, at.output, at.w1, at.w2, at.ln1, at.ln2}) {
      EXPECT_EQ(layout.offset(index) % kAlignedElements, 0) << layout.info(index).name;
    }
  }
  EXPECT_EQ(layout.parameters(), parameter_count(config));
  EXPECT_GT(layout.elements(), layout.parameters());
  EXPECT_EQ(layout.elements() % kAlignedElements, 0);
}

TEST(ParameterLayout, AModelOfTheHandOutNeedsNoPadding) {
  for (const char* name : {"small", "medium", "large", "xl25", "xl26", "10B", "8B"}) {
    const ParameterLayout layout(find_model(name));
    EXPECT_EQ(layout.elements(), parameter_count(find_model(name))) << name;
    EXPECT_EQ(layout.size(), 9 * find_model(name).layers + 3) << name;
  }
}

TEST(ParameterLayout, AnUnknownParameterIsRefusedWithItsNearest) {
  const ParameterLayout layout(two_layers());
  EXPECT_TRUE(test::refuses([&] { layout.index_of("layers.0.attn.q_prj.weight"); },
                            "did you mean 'layers.0.attn.q_proj.weight'"));
}

TEST(ParameterLayout, AnImpossibleModelHasNone) {
  ModelConfig config = two_layers();
  config.heads = 5;
  EXPECT_TRUE(test::refuses([&] { ParameterLayout layout(config); }, "5 heads do not divide d_model 64"));
}

}  // namespace
}  // namespace syslab::model
