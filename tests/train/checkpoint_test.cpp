#include "train/checkpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/initialise.hpp"
#include "model/weights/safetensors.hpp"
#include "tests/model/refusal.hpp"
#include "tests/model/weights_in_file.hpp"
#include "tests/model/without_checksums.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::train {
namespace {

using model::ParameterArena;
using model::Plane;
using test::refuses;

ParameterArena arena_of(const model::ModelConfig& config, const model::ArenaOptions& options = {}) {
  return {model::ParameterLayout(config), options, {}};
}

std::vector<double> plane_of(const ParameterArena& arena, Plane plane) { return to_doubles(arena.whole(plane)); }

class Checkpoint : public ::testing::Test {
 protected:
  Checkpoint() {
    initialise(arena_, 1);
    // Moments that are no rounder than a run's.
    for (int index = 0; index < arena_.layout().size(); ++index) {
      std::vector<double> values = arena_.read(Plane::weight, index);
      const Shape shape{static_cast<std::int64_t>(values.size())};
      for (double& value : values) value *= 1e-3 / 3;
      arena_.write(Plane::first_moment, index, 0, ConstTensorView(values.data(), DType::f64, shape));
      for (double& value : values) value *= value;
      arena_.write(Plane::second_moment, index, 0, ConstTensorView(values.data(), DType::f64, shape));
    }
    settings_ = settings_of(config_);
    settings_["lr"] = "0.001";
  }

  void save() { save_checkpoint(folder_ / "c", arena_, state_, settings_); }
  TrainingState state_in(const char* name) {
    ParameterArena back = arena_of(config_);
    return load_checkpoint(folder_ / name, back, settings_);
  }

  model::ModelConfig config_ = model::find_model("tiny");
  ParameterArena arena_ = arena_of(config_);
  TrainingState state_{.step = 1000, .next_batch = 0xffffffffffffffff, .scaler = LossScaler::State{0.1F, 1234}};
  Settings settings_;
  test::TemporaryFolder folder_;
};

TEST_F(Checkpoint, BringsBackEveryBit) {
  save();
  ParameterArena back = arena_of(config_, {.copy_dtype = DType::bf16});
  EXPECT_EQ(load_checkpoint(folder_ / "c", back, settings_), state_);
  for (const Plane plane : {Plane::weight, Plane::first_moment, Plane::second_moment}) {
    EXPECT_EQ(plane_of(back, plane), plane_of(arena_, plane));
  }
  EXPECT_NE(plane_of(back, Plane::first_moment), plane_of(back, Plane::second_moment));
  const double weight = back.read(Plane::weight, 0)[0];
  EXPECT_EQ(back.read(Plane::copy, 0)[0], to_double(to_bf16(static_cast<float>(weight))));
}

TEST_F(Checkpoint, SavingAgainGivesTheSameBytes) {
  save();
  ParameterArena back = arena_of(config_);
  save_checkpoint(folder_ / "d", back, load_checkpoint(folder_ / "c", back, settings_), settings_);
  EXPECT_EQ(test::bytes_of(folder_ / "d"), test::bytes_of(folder_ / "c"));
}

TEST_F(Checkpoint, ARunWithoutAScalerHasNone) {
  state_.scaler.reset();
  save();
  EXPECT_EQ(state_in("c").scaler, std::nullopt);
}

TEST_F(Checkpoint, IsAWeightsFileToo) {
  save();
  ParameterArena back = arena_of(config_);
  test::load_weights(back, folder_ / "c");
  EXPECT_EQ(plane_of(back, Plane::weight), plane_of(arena_, Plane::weight));
}

TEST_F(Checkpoint, OtherSettingsAreRefusedNamingAllWithBothValues) {
  save();
  Settings other = settings_;
  other["lr"] = "0.01";
  other["seed"] = "7";
  other.erase("model.handout");
  ParameterArena back = arena_of(config_);
  EXPECT_TRUE(refuses([&] { load_checkpoint(folder_ / "c", back, other); }, "lr was 0.001 and is 0.01 now",
                      "seed was not set and is 7 now", "model.handout was 2026 and is not set now"));
  const std::vector<double> weights = plane_of(back, Plane::weight);
  EXPECT_EQ(std::count(weights.begin(), weights.end(), 0.0), static_cast<std::ptrdiff_t>(weights.size()));
}

TEST_F(Checkpoint, AnotherModelOrDtypeIsRefusedWhateverTheSettingsSay) {
  save();
  const auto refuses_into = [&](ParameterArena arena, const char* says) {
    return refuses([&] { load_checkpoint(folder_ / "c", arena, settings_); }, says);
  };
  model::ModelConfig other = config_;
  other.layers = 1;
  EXPECT_TRUE(refuses_into(arena_of(other), "holds 63 tensors, and this model with two moments has 36"));
  other.layers = 3;
  EXPECT_TRUE(refuses_into(arena_of(other), "has no 'layers.2"));
  EXPECT_TRUE(refuses_into(arena_of(config_, {.dtype = DType::f64}), "is kept in F32, and this run's in F64"));
}

TEST_F(Checkpoint, OtherFilesAreNoCheckpoints) {
  test::save_weights(arena_, folder_ / "weights");
  EXPECT_TRUE(refuses([&] { state_in("weights"); }, "no checkpoint"));
  const auto with = [&](const char* key, const char* value) {
    model::FileMetadata metadata{{"syslab.checkpoint", "1"},
                                 {"syslab.step", "1"},
                                 {"syslab.next_batch", "1"},
                                 {"syslab.scaler.scale", "1"},
                                 {"syslab.scaler.clean_steps", "0"}};
    metadata[key] = value;
    model::SafetensorsWriter(folder_ / "x", {}, metadata).finish();
    return refuses([&] { state_in("x"); }, "cannot resume from", value);
  };
  EXPECT_TRUE(with("syslab.checkpoint", "2"));
  EXPECT_TRUE(with("syslab.step", "many"));
  EXPECT_TRUE(with("syslab.step", "-1"));
  EXPECT_TRUE(with("syslab.next_batch", "12x"));
  EXPECT_TRUE(with("syslab.scaler.scale", "nan"));
  EXPECT_TRUE(with("syslab.scaler.scale", "0"));
  model::SafetensorsWriter(folder_ / "x", {}, {{"syslab.checkpoint", "1"}}).finish();
  EXPECT_TRUE(refuses([&] { state_in("x"); }, "does not tell 'syslab.step'"));
}

TEST_F(Checkpoint, DamageIsRefusedNamingTheTensorBeforeAnythingIsRead) {
  save();
  std::string bytes = test::bytes_of(folder_ / "c");
  bytes[bytes.size() - 3] ^= 0x40;  // of the last tensor
  test::write_bytes(folder_ / "d", bytes);
  ParameterArena back = arena_of(config_);
  EXPECT_TRUE(refuses([&] { load_checkpoint(folder_ / "d", back, settings_); }, "d' as safetensors: the data of",
                      "optimizer.v." + arena_.layout().infos().back().name + "' are damaged"));
  const std::vector<double> weights = plane_of(back, Plane::weight);
  EXPECT_EQ(std::count(weights.begin(), weights.end(), 0.0), static_cast<std::ptrdiff_t>(weights.size()));
}

TEST_F(Checkpoint, OneWithoutChecksumsIsStillRead) {
  save();
  test::write_bytes(folder_ / "d", test::without_checksums(test::bytes_of(folder_ / "c")));
  EXPECT_EQ(state_in("d"), state_);
}

TEST_F(Checkpoint, APlaceIsTriedAndLeftAsItWas) {
  EXPECT_TRUE(refuses([&] { check_place(folder_ / "nowhere/c"); }, "nowhere/c", "No such file or directory"));
  EXPECT_TRUE(refuses([&] { check_place(folder_ / ""); }, "no plain file"));
  save();
  check_place(folder_ / "c");
  check_place(folder_ / "d");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "d"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / ""), {}), 1);
  EXPECT_EQ(state_in("c"), state_);
}

TEST_F(Checkpoint, ASaveThatFailsLeavesTheOneBefore) {
  save();
  const std::string before = test::bytes_of(folder_ / "c");
  const ParameterArena bare = arena_of(config_, {.moments = false});
  EXPECT_THROW(save_checkpoint(folder_ / "c", bare, state_, settings_), Error);
  EXPECT_EQ(test::bytes_of(folder_ / "c"), before);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"c"});
}

}  // namespace
}  // namespace syslab::train
