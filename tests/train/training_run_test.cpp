// A run over a text: it learns, stops and goes on, and says where a NaN came from.
#include "train/training_run.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "tests/model/refusal.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::train {
namespace {

using model::Plane;
using model::Precision;
using test::refuses;

class Run : public ::testing::Test {
 protected:
  Run() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "the quick brown fox no. " + std::to_string(i * i % 97) + " jumps; ";
    std::ofstream(folder_ / "text.txt") << text;
  }

  static RunOptions options(Precision precision = Precision::fp32) {
    RunOptions made;
    made.config = model::find_model("tiny");
    made.config.vocab = 256;
    made.model.precision = precision;
    made.batch = 2;
    made.seq = 16;
    made.steps = 12;
    made.schedule = {1e-2, 1e-3, 3, 12};
    made.seed = 7;
    return made;
  }

  static std::vector<double> all_of(TrainingRun& run, Plane plane) {
    return to_doubles(run.model().parameters().whole(plane));
  }

  test::TemporaryFolder folder_;
};

TEST_F(Run, LearnsItsText) {
  const TokenFile text(folder_ / "text.txt");
  RunOptions longer = options();
  longer.steps = longer.schedule.cycle = 60;
  TrainingRun run(longer, text, {});
  const double before = run.validation_loss(3);
  EXPECT_NEAR(before, std::log(256), 0.8) << "logits of a new model are small";
  const double first = run.next().loss;
  double last = 0;
  while (!run.is_done()) last = run.next().loss;
  EXPECT_LT(last, 0.6 * first);
  EXPECT_LT(run.validation_loss(3), 0.6 * before);
  EXPECT_EQ(run.validation_loss(3), run.validation_loss(3));
  EXPECT_EQ(run.state().step, 60);
}

TEST_F(Run, ResumedItGoesOnBitForBit) {
  const TokenFile text(folder_ / "text.txt");
  for (const Precision precision : {Precision::fp32, Precision::fp64}) {
    TrainingRun whole(options(precision), text, {}), begun(options(precision), text, {}),
        resumed(options(precision), text, {});
    std::vector<double> losses, resumed_losses;
    while (!whole.is_done()) losses.push_back(whole.next().loss);
    for (int i = 0; i < 5; ++i) resumed_losses.push_back(begun.next().loss);
    begun.save(folder_ / "half");
    resumed.resume(folder_ / "half");
    EXPECT_EQ(resumed.state().step, 5);
    while (!resumed.is_done()) resumed_losses.push_back(resumed.next().loss);
    EXPECT_EQ(resumed_losses, losses);
    for (const Plane plane : {Plane::weight, Plane::first_moment, Plane::second_moment}) {
      EXPECT_EQ(all_of(resumed, plane), all_of(whole, plane));
    }
    whole.save(folder_ / "a");
    resumed.save(folder_ / "b");
    EXPECT_EQ(test::bytes_of(folder_ / "a"), test::bytes_of(folder_ / "b"));
  }
}

TEST_F(Run, ResumesNothingThatWouldGoOnOtherwise) {
  const TokenFile text(folder_ / "text.txt");
  TrainingRun run(options(), text, {});
  run.next();
  run.save(folder_ / "c");
  RunOptions other = options();
  other.schedule.largest = 2e-2;
  TrainingRun faster(other, text, {});
  const std::vector<double> before = all_of(faster, Plane::weight);
  EXPECT_TRUE(refuses([&] { faster.resume(folder_ / "c"); }, "run.lr.largest was 0.01 and is 0.02 now"));
  EXPECT_EQ(all_of(faster, Plane::weight), before);
}

TEST_F(Run, SaysWhichTensorFirstHeldNoNumber) {
  const TokenFile text(folder_ / "text.txt");
  TrainingRun run(options(), text, {});
  run.next();
  run.next();
  const int index = run.model().parameters().layout().layer(1).w2;
  const float poison = INFINITY;
  run.model().parameters().write(Plane::weight, index, 3, ConstTensorView(&poison, DType::f32, {1}));
  const std::vector<double> before = all_of(run, Plane::weight);
  try {
    run.next();
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::check);
    EXPECT_NE(std::string(error.what()).find("the first tensor that holds no number: layers.1.ffn.w2.weight[0, 3]"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(all_of(run, Plane::weight), before) << "the step was not taken";
}

TEST_F(Run, RefusesWhatCannotBe) {
  const TokenFile text(folder_ / "text.txt");
  RunOptions wrong = options();
  wrong.config.vocab = 100;  // 't' is 116
  EXPECT_TRUE(refuses([&] { TrainingRun(wrong, text, {}); }, "116"));
  wrong = options();
  wrong.steps = 0;
  EXPECT_TRUE(refuses([&] { TrainingRun(wrong, text, {}); }, "a run of 0 steps"));
  wrong = options();
  wrong.seq = 33;
  EXPECT_TRUE(refuses([&] { TrainingRun(wrong, text, {}); }, "context is 32"));
  wrong = options();
  wrong.max_norm = 0;
  EXPECT_TRUE(refuses([&] { TrainingRun(wrong, text, {}); }, "it must be positive"));
}

TEST_F(Run, EntropyOfSingleTokens) {
  std::ofstream(folder_ / "even.txt") << "abcdabcd";
  EXPECT_NEAR(unigram_entropy(TokenFile(folder_ / "even.txt"), 256), std::log(4), 1e-12);
}

}  // namespace
}  // namespace syslab::train
