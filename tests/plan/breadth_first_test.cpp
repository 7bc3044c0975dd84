#include "plan/breadth_first.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace syslab::plan {
namespace {

using namespace std::chrono_literals;

TEST(HalvingSteps, MeetTheEndsThenTheMiddles) {
  EXPECT_EQ(halving_steps(0), std::vector<int>{});
  EXPECT_EQ(halving_steps(1), std::vector<int>{0});
  EXPECT_EQ(halving_steps(2), (std::vector<int>{0, 0}));
  EXPECT_EQ(halving_steps(3), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(halving_steps(5), (std::vector<int>{0, 2, 1, 2, 0}));
  EXPECT_EQ(halving_steps(9), (std::vector<int>{0, 3, 2, 3, 1, 3, 2, 3, 0}));
}

// Plans of one or two experiments with an axis `seq` and one `dtype`.
class BreadthFirst : public testing::Test {
 protected:
  void add(const registry::Experiment& experiment, std::int64_t seq, const std::string& implementation,
           Nanoseconds time = {}, const std::string& dtype = "fp32") {
    PlannedCase planned;
    planned.experiment = &experiment;
    planned.params.set("seq", seq);
    planned.params.set("dtype", dtype);
    planned.implementation = implementation;
    planned.case_uid = experiment.id + " " + std::to_string(seq) + " " + dtype;
    planned.predicted_time = time;
    planned.index = static_cast<int>(plan_.cases.size());
    plan_.cases.push_back(planned);
  }
  void add_grid(const registry::Experiment& experiment, int last, const std::string& implementation = "naive") {
    for (int seq = 0; seq <= last; ++seq) add(experiment, seq, implementation);
  }
  std::vector<std::string> order() {
    breadth_first(plan_);
    std::vector<std::string> said;
    for (const PlannedCase& planned : plan_.cases) {
      EXPECT_EQ(planned.index, static_cast<int>(said.size()));
      said.push_back(planned.task == Task::law ? planned.law : planned.implementation + " " + planned.case_uid);
    }
    return said;
  }
  static registry::Experiment named(const std::string& id) {
    registry::Experiment experiment;
    experiment.id = id;
    return experiment;
  }

  registry::Experiment a_ = named("a"), b_ = named("b");
  Plan plan_;
};

using Said = std::vector<std::string>;

TEST_F(BreadthFirst, EndsAndMiddleComeFirst) {
  add_grid(a_, 4);
  EXPECT_EQ(order(), (Said{"naive a 0 fp32", "naive a 4 fp32", "naive a 2 fp32", "naive a 1 fp32", "naive a 3 fp32"}));
}

TEST_F(BreadthFirst, ExperimentsTakeTurnsStepByStep) {
  add_grid(a_, 2);
  add_grid(b_, 2);
  EXPECT_EQ(order(), (Said{"naive a 0 fp32", "naive a 2 fp32", "naive b 0 fp32", "naive b 2 fp32", "naive a 1 fp32",
                           "naive b 1 fp32"}));
}

TEST_F(BreadthFirst, StepsOfAxesAddUp) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (int seq = 0; seq <= 2; ++seq) add(a_, seq, "naive", {}, dtype);
  }
  const Said said = order();
  EXPECT_EQ(Said(said.begin(), said.begin() + 4),
            (Said{"naive a 0 bf16", "naive a 2 bf16", "naive a 0 fp32", "naive a 2 fp32"}));
  EXPECT_EQ(said.back(), "naive a 1 fp16");  // in the middle of both
}

TEST_F(BreadthFirst, ImplementationsOfAPointStayTogether) {
  add_grid(a_, 2, "naive");
  add_grid(a_, 2, "fast");
  EXPECT_EQ(order(), (Said{"naive a 0 fp32", "fast a 0 fp32", "naive a 2 fp32", "fast a 2 fp32", "naive a 1 fp32",
                           "fast a 1 fp32"}));
}

TEST_F(BreadthFirst, OfOneStepTheShorterPointsComeFirst) {
  add(a_, 0, "naive", 1s);
  add(a_, 0, "fast", 9s);
  add(a_, 1, "naive", 1s);
  add(a_, 2, "naive", 2s);
  EXPECT_EQ(order(), (Said{"naive a 2 fp32", "naive a 0 fp32", "fast a 0 fp32", "naive a 1 fp32"}));
}

TEST_F(BreadthFirst, WhatDoesNotRunIsNoEndOfAnAxis) {
  add_grid(a_, 4);
  plan_.cases[4].skip_reason = "needs 6 GPUs";
  plan_.cases[3].predicted_oom = "needs 242 GiB";
  EXPECT_EQ(order(), (Said{"naive a 0 fp32", "naive a 2 fp32", "naive a 1 fp32", "naive a 3 fp32", "naive a 4 fp32"}));
}

TEST_F(BreadthFirst, LawsStayInFront) {
  add_grid(a_, 2);
  for (const char* law : {"rows_sum_to_one", "causal_prefix"}) {
    add(a_, 0, "naive");
    plan_.cases.back().task = Task::law;
    plan_.cases.back().law = law;
  }
  const Said said = order();
  EXPECT_EQ(Said(said.begin(), said.begin() + 2), (Said{"rows_sum_to_one", "causal_prefix"}));
  EXPECT_EQ(said.size(), 5u);
}

TEST_F(BreadthFirst, RanksAreAnAxis) {
  for (const int ranks : {1, 2, 3}) {
    add(a_, 0, "naive");
    plan_.cases.back().world_size = ranks;
  }
  breadth_first(plan_);
  EXPECT_EQ(plan_.cases[2].world_size, 2);
}

}  // namespace
}  // namespace syslab::plan
