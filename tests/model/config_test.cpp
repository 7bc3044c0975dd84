#include "model/config.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "model/parameters.hpp"
#include "model/sizes_in_words.hpp"
#include "tests/model/refusal.hpp"

namespace syslab::model {
namespace {

using test::refuses;

// Parameter counts of the hand-outs' models, as derived there and confirmed by its readers' logs.
TEST(ModelConfig, CountsTheParametersOfEveryNamedModel) {
  const struct {
    const char* name;
    std::int64_t block, total, without_one_embedding, tensors;
  } kExpected[] = {
      {"small", 9'438'720, 128'625'408, 120'945'408, 111},
      {"medium", 16'779'264, 423'183'360, 412'943'360, 219},
      {"large", 26'216'960, 969'411'840, 956'611'840, 327},
      {"xl25", 40'963'200, 1'998'235'200, 1'982'235'200, 435},
      {"xl26", 104'862'720, 3'406'809'600, 3'381'209'600, 291},
      {"10B", 254'813'184, 12'832'823'808, 12'786'743'808, 453},
      {"8B", 202'383'360, 8'125'698'048, 7'503'368'192, 309},
      {"cpu10m", 1'049'088, 10'365'696, 7'805'696, 48},
      {"tiny", 41'088, 95'168, 88'704, 21},
  };
  ASSERT_EQ(named_models().size(), std::size(kExpected));
  for (const auto& expected : kExpected) {
    const ModelConfig config = find_model(expected.name);
    validate(config);
    EXPECT_EQ(block_parameter_count(config), expected.block) << expected.name;
    EXPECT_EQ(parameter_count(config), expected.total) << expected.name;
    EXPECT_EQ(parameter_count(config) - config.vocab * config.d_model, expected.without_one_embedding) << expected.name;
    EXPECT_EQ(ParameterLayout(config).size(), expected.tensors) << expected.name;
  }
}

TEST(ModelConfig, TellsItsSizesInWords) {
  EXPECT_EQ(sizes_in_words(find_model("small")),
            "12 layers, d_model 768, 12 heads, d_ff 3072, vocabulary 10,000: 128,625,408 parameters");
  EXPECT_EQ(sizes_in_words(find_model("tiny")),
            "2 layers, d_model 64, 4 heads, d_ff 128, vocabulary 101: 95,168 parameters");
}

// docs/the-model.md has a row for each model, and they say what the table of the code says.
TEST(ModelConfig, ThePageHasTheSizesOfTheCode) {
  std::ifstream file(SYSLAB_SOURCE_ROOT "/docs/the-model.md");
  std::ostringstream page;
  page << file.rdbuf();
  const auto parts_of = [](std::string text) {  // "12 layers, d_model 768, …: 128,625,408 parameters" as its numbers
    std::string numbers;
    for (const char c : text) numbers += (c >= '0' && c <= '9') || c == ',' ? c : ' ';
    std::istringstream words(numbers);
    std::vector<std::string> found;
    for (std::string word; words >> word;) {
      while (!word.empty() && word.back() == ',') word.pop_back();
      if (!word.empty()) found.push_back(word);
    }
    return found;
  };
  for (const NamedModel& model : named_models()) {
    std::string row = "| `" + model.name + "` |";
    for (const std::string& number : parts_of(sizes_in_words(model.config))) row += " " + number + " |";
    EXPECT_NE(page.str().find(row), std::string::npos) << row;
  }
}

TEST(ModelConfig, KnowsTheBytesOfWeightsAndOfTheirWholeTraining) {
  const struct {
    const char* name;
    double weights_gib, training_gib;  // 4 and 16 bytes a parameter
  } kExpected[] = {{"small", 0.479, 1.917}, {"medium", 1.576, 6.306}, {"large", 3.611, 14.445},
                   {"xl25", 7.444, 29.776}, {"xl26", 12.691, 50.765}, {"10B", 47.806, 191.224},
                   {"8B", 30.27, 121.08}};
  for (const auto& expected : kExpected) {
    const double gib = static_cast<double>(parameter_count(find_model(expected.name))) * 0x1p-30;
    EXPECT_NEAR(4 * gib, expected.weights_gib, 0.0051) << expected.name;
    EXPECT_NEAR(16 * gib, expected.training_gib, 0.0051) << expected.name;
  }
}

TEST(ModelConfig, CountsForwardOperationsOfEveryModelAndContext) {
  const std::int64_t kContexts[] = {128, 256, 512, 1024, 2048};
  const struct {
    const char* name;
    double teraflops[5];  // batch 4
  } kExpected[] = {
      {"small", {0.126, 0.257, 0.534, 1.145, 2.600}},   {"medium", {0.429, 0.871, 1.794, 3.795, 8.414}},
      {"large", {0.992, 2.007, 4.111, 8.609, 18.764}},  {"xl25", {2.050, 4.140, 8.441, 17.526, 37.628}},
      {"xl26", {3.484, 7.010, 14.192, 29.072, 60.893}}, {"10B", {13.154, 26.428, 53.339, 108.611, 224.952}},
  };
  for (const auto& expected : kExpected) {
    const ModelConfig config = find_model(expected.name);
    for (int i = 0; i < 5; ++i) {
      const double flops = forward_flops(config, 4, kContexts[i]);
      EXPECT_NEAR(flops / 1e12, expected.teraflops[i], 0.00051) << expected.name << " at " << kContexts[i];
      EXPECT_EQ(backward_flops(config, 4, kContexts[i]), 2 * flops);
    }
  }
}

// The leaderboard's forward pass: 0.902 PFLOP in projections, 0.0816 in the head, 0.598 in causal attention.
TEST(ModelConfig, CausalAttentionCountsHalf) {
  const ModelConfig config = find_model("8B");
  const double forward = forward_flops(config, 2, 32768, true);
  EXPECT_NEAR((forward_flops(config, 2, 32768) - forward) / 1e15, 0.598, 0.0006);
  EXPECT_NEAR((forward - 0.598e15) / 1e15, 0.902 + 0.0816, 0.001);
}

TEST(ModelConfig, CountsMatrixProducts) { EXPECT_EQ(forward_product_count(find_model("small")), 109); }

TEST(ModelConfig, XlMeansAnotherModelInEachYear) {
  EXPECT_EQ(find_model("xl", Handout::y2025), find_model("xl25"));
  EXPECT_EQ(find_model("xl", Handout::y2026), find_model("xl26"));
  EXPECT_EQ(find_model("2.7B"), find_model("xl26"));
  EXPECT_TRUE(refuses([] { find_model("xl"); }, "xl25"));
  EXPECT_EQ(find_model("small", Handout::y2025).handout, Handout::y2025);
  EXPECT_EQ(find_model("small").handout, Handout::y2026);
}

TEST(ModelConfig, AnUnknownNameIsRefusedWithItsNearest) {
  EXPECT_TRUE(refuses([] { find_model("smal"); }, "did you mean 'small'"));
}

TEST(ModelConfig, ImpossibleSizesAreRefusedByName) {
  const auto refuses_with = [](auto change, const char* says) {
    ModelConfig config = find_model("small");
    change(config);
    return refuses([&] { validate(config); }, says);
  };
  EXPECT_TRUE(
      refuses_with([](ModelConfig& c) { c.heads = 7; }, "7 heads do not divide d_model 768 (5 would be left over)"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.context = 0; }, "context is 0"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.vocab = -3; }, "vocab is -3"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.d_model = 0; }, "d_model is 0"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.d_ff = 0; }, "d_ff is 0"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.layers = 0; }, "layers is 0"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.heads = 0; }, "heads is 0"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.d_ff = std::int64_t{1} << 40; }, "d_ff is 1099511627776"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.d_model = 36; }, "head dimension 3 (d_model 36 / 12 heads) is odd"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.rope_theta = -1; }, "rope_theta is -1"));
  EXPECT_TRUE(refuses_with([](ModelConfig& c) { c.rope_theta = std::nan(""); }, "rope_theta is nan"));
}

TEST(ModelConfig, WithoutRopeAHeadMayBeOdd) {
  ModelConfig config = find_model("small");
  config.d_model = 36;
  config.rope_theta = std::nullopt;
  EXPECT_NO_THROW(validate(config));
}

}  // namespace
}  // namespace syslab::model
