// Laws of checkpoints: whatever was saved is resumed, and whatever is damaged is not.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/initialise.hpp"
#include "tests/laws/expect_law.hpp"
#include "tests/temporary_folder.hpp"
#include "train/checkpoint.hpp"

namespace syslab::train {
namespace {

using model::ParameterArena;
using model::Plane;

model::ModelConfig draw_model() {
  const auto size = [](const char* name, int last) {
    return static_cast<std::int64_t>(*rc::gen::inRange(1, last + 1).as(name));
  };
  model::ModelConfig config{.vocab = size("vocab", 40), .context = size("context", 16)};
  config.heads = size("heads", 3);
  config.d_model = config.heads * 2 * size("half of the head dimension", 5);
  config.d_ff = size("d_ff", 20);
  config.layers = size("layers", 3);
  return config;
}

TrainingState draw_state() {
  TrainingState state;
  state.step = *rc::gen::inRange<std::int64_t>(0, INT64_MAX).as("step");
  state.next_batch = *rc::gen::arbitrary<std::uint64_t>().as("next batch");
  if (*rc::gen::arbitrary<bool>()) {
    const int exponent = *rc::gen::inRange(-126, 128).as("exponent of the scale");
    state.scaler = LossScaler::State{std::ldexp(1.0F, exponent), *rc::gen::inRange<std::int64_t>(0, 2000)};
  }
  return state;
}

Settings draw_settings() {
  const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  return *rc::gen::container<Settings>(text, text).as("settings");
}

TEST(CheckpointLaws, WhatWasSavedIsResumedAndNothingElse) {
  const test::TemporaryFolder folder;
  property::expect_law("train.checkpoint_round_trip", 50, [&](check::Observation&) {
    const model::ModelConfig config = draw_model();
    const DType dtype = *rc::gen::element(DType::f32, DType::f64);
    ParameterArena arena(model::ParameterLayout(config), {.dtype = dtype}, {});
    initialise(arena, *rc::gen::inRange<std::uint64_t>(0, 100).as("seed"));
    const TensorView weights = arena.whole(Plane::weight), moments = arena.whole(Plane::second_moment);
    std::copy_n(static_cast<const char*>(weights.data), arena.bytes(Plane::weight), static_cast<char*>(moments.data));
    const TrainingState state = draw_state();
    const Settings settings = draw_settings();
    save_checkpoint(folder / "c", arena, state, settings);

    ParameterArena back(model::ParameterLayout(config), {.dtype = dtype}, {});
    RC_ASSERT(load_checkpoint(folder / "c", back, settings) == state);
    for (const Plane plane : {Plane::weight, Plane::first_moment, Plane::second_moment}) {
      RC_ASSERT(to_doubles(back.whole(plane)) == to_doubles(arena.whole(plane)));
    }

    // One setting more is another run's.
    Settings other = settings;
    other["another setting"] += "x";
    RC_ASSERT_THROWS_AS(load_checkpoint(folder / "c", back, other), Error);
  });
}

TEST(CheckpointLaws, ACutCheckpointIsRefused) {
  const test::TemporaryFolder folder;
  property::expect_law("train.checkpoint_truncation", 50, [&](check::Observation&) {
    const model::ModelConfig config = draw_model();
    ParameterArena arena(model::ParameterLayout(config), {}, {});
    save_checkpoint(folder / "c", arena, draw_state(), {});
    const std::string whole = test::bytes_of(folder / "c");
    const auto missing =
        *rc::gen::oneOf(rc::gen::inRange<std::size_t>(1, 9), rc::gen::inRange<std::size_t>(1, whole.size() + 1))
             .as("bytes missing");
    test::write_bytes(folder / "cut", whole.substr(0, whole.size() - missing));
    RC_ASSERT_THROWS_AS(load_checkpoint(folder / "cut", arena, {}), Error);
  });
}

}  // namespace
}  // namespace syslab::train
