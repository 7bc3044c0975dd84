#include "model/weights/weights_file.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "model/initialise.hpp"
#include "tests/model/refusal.hpp"
#include "tests/model/weights_in_file.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::model {
namespace {

using test::load_weights;
using test::refuses;
using test::save_weights;

ParameterArena arena_of(const ModelConfig& config, const ArenaOptions& options = {}) {
  return {ParameterLayout(config), options, {}};
}

std::vector<double> weights_of(const ParameterArena& arena) { return to_doubles(arena.whole(Plane::weight)); }

class WeightsFile : public ::testing::Test {
 protected:
  WeightsFile() { initialise(arena_, 9); }

  ParameterArena arena_ = arena_of(find_model("tiny"));
  test::TemporaryFolder folder_;
};

TEST_F(WeightsFile, ReadsWhatItWroteBitForBit) {
  save_weights(arena_, folder_ / "w");
  ParameterArena back = arena_of(find_model("tiny"), {.copy_dtype = DType::bf16});
  load_weights(back, folder_ / "w");
  EXPECT_EQ(weights_of(back), weights_of(arena_));
  const double weight = back.read(Plane::weight, 0)[0];
  EXPECT_EQ(back.read(Plane::copy, 0)[0], to_double(to_bf16(static_cast<float>(weight))));
}

TEST_F(WeightsFile, OfWeightsInHalvesIsThatOfWholeOnes) {
  ParameterArena split = arena_of(find_model("tiny"), {.copy_dtype = DType::bf16, .split = true});
  initialise(split, 9);
  save_weights(arena_, folder_ / "whole");
  save_weights(split, folder_ / "split");
  EXPECT_TRUE(test::bytes_of(folder_ / "whole") == test::bytes_of(folder_ / "split"));
  ParameterArena back = arena_of(find_model("tiny"), {.copy_dtype = DType::bf16, .split = true});
  load_weights(back, folder_ / "whole");
  for (const Plane plane : {Plane::copy, Plane::low}) {
    EXPECT_EQ(std::memcmp(back.whole(plane).data, split.whole(plane).data, split.bytes(plane)), 0) << to_string(plane);
  }
  EXPECT_EQ(to_doubles(back.gains().values), to_doubles(split.gains().values));
}

TEST_F(WeightsFile, NamesStandInRegistrationOrder) {
  save_weights(arena_, folder_ / "w");
  const SafetensorsReader reader(folder_ / "w");
  std::vector<std::string> names;
  for (const FileTensor& tensor : reader.tensors()) names.push_back(tensor.name);
  EXPECT_EQ(names, arena_.layout().names());
}

TEST_F(WeightsFile, AnyFloatingDtypeIsRead) {
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16}) {
    save_weights(arena_, folder_ / "w", dtype);
    ParameterArena back = arena_of(find_model("tiny"));
    load_weights(back, folder_ / "w");
    const std::vector<double> expected = weights_of(arena_), found = weights_of(back);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i],
                  unit_roundoff(dtype) * std::max(std::abs(expected[i]), smallest_normal(dtype)));
    }
  }
}

TEST_F(WeightsFile, AnotherModelsFileIsRefusedBeforeAnythingIsRead) {
  save_weights(arena_, folder_ / "w");
  const auto refuses_for = [&](auto change, auto... parts) {
    ModelConfig config = find_model("tiny");
    change(config);
    ParameterArena other = arena_of(config);
    const auto result = refuses([&] { load_weights(other, folder_ / "w"); }, "/w' is not of this model", parts...);
    const std::vector<double> weights = weights_of(other);
    EXPECT_TRUE(std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; }));
    return result;
  };
  EXPECT_TRUE(refuses_for([](ModelConfig& c) { c.layers = 3; }, "has no 'layers.2.attn.q_proj.weight'",
                          "nearest to it is 'layers."));
  EXPECT_TRUE(refuses_for([](ModelConfig& c) { c.vocab = 102; }, "'token_embeddings.weight' has the shape (101, 64)",
                          "(102, 64)"));
  EXPECT_TRUE(refuses_for([](ModelConfig& c) { c.d_ff = 256; }, "(128, 64)", "(256, 64)"));
}

TEST_F(WeightsFile, IntegersAreNoWeights) {
  std::vector<FileTensor> tensors = file_tensors(arena_.layout(), "", FileDType::i64);
  SafetensorsWriter writer(folder_ / "w", tensors);
  for (const FileTensor& tensor : tensors) writer.write(std::vector<std::byte>(tensor.bytes()));
  writer.finish();
  EXPECT_TRUE(refuses([&] { load_weights(arena_, folder_ / "w"); }, "holds integers (I64)"));
}

TEST_F(WeightsFile, ATensorLongerThanAPieceIsWrittenAndReadWhole) {
  ModelConfig config = find_model("tiny");
  config.vocab = 70'000;  // × 64 = 4.48 M elements, more than the 2^22 of a piece
  ParameterArena large = arena_of(config, {.gradients = false, .moments = false});
  initialise(large, 2);
  save_weights(large, folder_ / "w");
  ParameterArena back = arena_of(config, {.gradients = false, .moments = false});
  load_weights(back, folder_ / "w");
  EXPECT_EQ(weights_of(back), weights_of(large));
}

}  // namespace
}  // namespace syslab::model
