#include "plan/predict.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace syslab::plan {
namespace {

using namespace std::chrono_literals;

// A case of so many operations and bytes, of an implementation "naive".
class Predicted : public testing::Test {
 protected:
  Plan of(double flops, double bytes) {
    experiment_.id = "work";
    experiment_.flops = [flops](const Params&) { return flops; };
    experiment_.bytes = [bytes](const Params&) { return bytes; };
    PlannedCase planned;
    planned.experiment = &experiment_;
    planned.implementation = "naive";
    planned.case_uid = "uid";
    planned.predicted_bytes = bytes;
    Plan plan;
    plan.cases.push_back(planned);
    return plan;
  }
  const PlannedCase& after(Plan& plan, const Basis& basis) {
    predict(plan, basis);
    return plan.cases.front();
  }
  double seconds(double flops, double bytes, const Basis& basis) {
    Plan plan = of(flops, bytes);
    return Seconds(after(plan, basis).predicted_time).count();
  }
  // As protocol `kernel` has it, on a machine whose cache holds 16 MB.
  static Basis kernel() {
    Basis basis;
    basis.cpu.course = {.warmup_calls = 3,
                        .min_samples = 20,
                        .max_samples = 2000,
                        .warmup_time = 200ms,
                        .sample_floor = 200us,
                        .warmup_limit = 2s,
                        .device_budget = 3s,
                        .wall_budget = 10s,
                        .verify_share = 1.0 / 3,
                        .rotated_bytes = 32e6};
    basis.cpu.best = {1e11, 1e10};
    return basis;
  }

  registry::Experiment experiment_;
};

TEST_F(Predicted, TheSameCaseTakesWhatItTook) {
  Plan plan = of(1e9, 1e6);
  Basis basis = kernel();
  basis.measured[duration_key(plan.cases.front())] = {Seconds(7.5), "2 days ago"};
  const PlannedCase& planned = after(plan, basis);
  EXPECT_EQ(planned.predicted_time, 7500ms);
  EXPECT_EQ(planned.predicted_from, "measured 2 days ago");
  EXPECT_TRUE(planned.time_was_measured);
}

// A training step of 5 s on two GPUs was taken for one of 48 minutes: by an oracle that would take the same step.
TEST_F(Predicted, RanksShareTheWorkAndAreProvenOnSmallModels) {
  Basis basis = kernel();
  basis.cpu.course.device_budget = basis.cpu.course.wall_budget = 0ns;
  basis.cpu.course.warmup_time = 0ns;
  basis.cpu.course.min_samples = basis.cpu.course.max_samples = 10;
  Plan plan = of(1e13, 1e6);
  plan.cases.front().world_size = 2;
  const double of_two = Seconds(after(plan, basis).predicted_time).count();
  EXPECT_NEAR(of_two, 12 * 1e13 / 1e11 / 2, 0.05 * of_two);  // the first call, one to warm up, ten
}

TEST_F(Predicted, ItsOwnRateGoesBeforeTheMachinesAndThatBeforeAGuess) {
  Basis basis = kernel();
  basis.own[rate_key("work", "naive")] = {2e9, 1e10};
  Plan own = of(1e9, 1e3);
  EXPECT_EQ(after(own, basis).predicted_from, "estimated at 2 GFLOP/s, its own rate at other sizes");
  basis.own.clear();
  Plan machine = of(1e9, 1e3);
  EXPECT_EQ(after(machine, basis).predicted_from,
            "estimated at 100 GFLOP/s, the best measured here: perhaps too short");
  basis.cpu.best = {};
  Plan guess = of(1e3, 1e9);
  EXPECT_EQ(after(guess, basis).predicted_from, "estimated at 1 GB/s, assumed");
}

// Measured on two busy cores: 3.1 s for 400 kB in 53 µs, 5.4 s for 800 kB in 183 µs; each within a factor of two.
TEST_F(Predicted, NewInputsForEachCallCountWhereCallsAreShort) {
  Basis basis = kernel();
  basis.cpu.best = {0, 400e3 / 53e-6};
  EXPECT_NEAR(std::log2(seconds(0, 400e3, basis) / 3.1), 0, 1);
  basis.cpu.best = {0, 800e3 / 183e-6};
  EXPECT_NEAR(std::log2(seconds(0, 800e3, basis) / 5.4), 0, 1);
}

TEST_F(Predicted, ALongCallIsBoundedByTheBudgets) {
  const Basis basis = kernel();  // a call of 1 s, its oracle of 100 s
  const double predicted = seconds(1e11, 1e3, basis);
  EXPECT_GT(predicted, 100 + 100 + 1 + 1 + 3) << "start, check, warm-up, three samples, one of them verified";
  EXPECT_LT(predicted, 100 + 100 + 2 + 2 + 4 + 1);
}

TEST_F(Predicted, AStepCountNeedsNoBudget) {
  Basis basis;  // cs336: 5 steps, then 10
  basis.cpu.best = {1e12, 1e12};
  basis.cpu.course = {.warmup_calls = 5, .min_samples = 10, .max_samples = 10};
  EXPECT_NEAR(seconds(1e12, 1, basis), 0.05 + 1 + 1000 + 5 + 10 + 1000, 1);
}

TEST_F(Predicted, AFlushBeforeEachSampleCounts) {
  Basis basis = kernel();
  const double before = seconds(1e6, 1e3, basis);
  basis.cpu.course.flushed_bytes = 1e9;
  EXPECT_GT(seconds(1e6, 1e3, basis), before + 5);
}

TEST_F(Predicted, LaunchesMultiply) {
  Basis basis = kernel();
  const double one = seconds(1e9, 1e6, basis);
  basis.launches = 5;
  EXPECT_NEAR(seconds(1e9, 1e6, basis), 5 * one, 1e-6);
}

TEST_F(Predicted, MemoryThatCannotSufficeIsSaidWithBothSizes) {
  Basis basis = kernel();
  basis.cpu.memory_bytes = 1 << 20;
  basis.cpu.memory_of = "this machine has 1.0 MiB";
  Plan small = of(1, 1 << 20), large = of(1, 3 << 20), skipped = of(1, 3 << 20);
  skipped.cases.front().skip_reason = "no kernel";
  EXPECT_EQ(after(small, basis).predicted_oom, "");
  EXPECT_EQ(after(large, basis).predicted_oom, "needs 3.0 MiB, this machine has 1.0 MiB");
  EXPECT_EQ(after(skipped, basis).predicted_oom, "");
  basis.cpu.memory_bytes = 0;  // --try-oom
  Plan tried = of(1, 3 << 20);
  EXPECT_EQ(after(tried, basis).predicted_oom, "");
}

TEST_F(Predicted, TheTotalIsOfThoseThatAreTried) {
  Plan plan = of(1, 1);
  PlannedCase planned = plan.cases.front();
  planned.predicted_time = 2s;
  planned.predicted_from = "measured just now";
  PlannedCase skipped = planned, too_large = planned, unknown = planned;
  skipped.skip_reason = "no kernel";
  too_large.predicted_oom = "needs 1 PiB";
  unknown.predicted_time = {};
  unknown.predicted_from.clear();
  plan.cases = {planned, skipped, too_large, unknown, planned};
  EXPECT_EQ(predicted_total(plan).time, 4s);
  EXPECT_EQ(predicted_total(plan).unknown, 1);
}

TEST_F(Predicted, ALawThatNeverRanHasNoPrediction) {
  Plan plan = of(1e9, 1e6);
  plan.cases.front().task = Task::law;
  EXPECT_EQ(after(plan, kernel()).predicted_from, "");
}

}  // namespace
}  // namespace syslab::plan
