// Training steps of several ranks as cases, on steps that are made up: this tower knows no model.
#include "worker/cases/rank_training_case.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace syslab::worker {
namespace {

struct Ranks {
  int met = 0;
};

struct Measured {
  device::Kind device = device::Kind::cpu;
  std::optional<std::string> refusal;
  std::function<std::vector<StepCheck>(device::Stream)> check = [](device::Stream) {
    return std::vector<StepCheck>{{kCertificate, 0, 0, "to the bit"}, {"logits", 0.5, 1, "by hand"}};
  };
};

struct Workload : StepWorkload {
  int drawn = 0, steps = 0;
  double loss_of_step = 1;
  void refresh() override { ++drawn; }
  void run() override { ++steps; }
  void forward() override {}
  void backward() override {}
  void update() override {}
  double loss() override { return loss_of_step; }
};

// As parallel::PhasedSteps: what is kept is which step it was.
struct Steps {
  std::shared_ptr<Workload> of = std::make_shared<Workload>();
  std::vector<int> kept;
  void step() { of->run(); }
  void keep() {
    if (of->steps > 0) kept.push_back(of->steps);
  }
};

struct LeftBehind {
  std::vector<Record> records;
  std::string check_failed, unsupported;
  Ranks ranks;

  const CheckRecord* check(const std::string& name) const {
    for (const Record& record : records) {
      const auto* one = std::get_if<CheckRecord>(&record);
      if (one != nullptr && one->name == name) return one;
    }
    return nullptr;
  }
  double metric(const std::string& name) const {
    for (const Record& record : records) {
      const auto* one = std::get_if<MetricRecord>(&record);
      if (one != nullptr && one->name == name) return one->value.value();
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
};

LeftBehind run(const Measured& measured, const std::shared_ptr<Steps>& steps = std::make_shared<Steps>()) {
  LeftBehind left;
  CaseRequest request;
  request.experiment = "test";
  request.seed = 7;
  request.protocol = "quick";
  CaseContext context(request, [&left](const Record& record) { left.records.push_back(record); });
  const auto meet = [&](RankCase& made) {
    ++left.ranks.met;
    made.of_first = [](double own) { return own; };
    made.barrier = [] {};
    made.check = measured.check;
    made.start = [steps](device::Stream) {
      RankRun run;
      run.series = {kept_steps(
          steps->of, [steps] { steps->step(); }, [steps] { steps->keep(); })};
      run.tell = [steps](CaseContext& told, const std::vector<std::vector<double>>& seconds) {
        steps->keep();
        tell_training(told, 16, 1000, steps->of->loss(), seconds[0]);
      };
      return run;
    };
  };
  try {
    run_rank_training(context, measured.device, measured.refusal, meet);
  } catch (const CheckFailed& failed) {
    left.check_failed = failed.what();
  } catch (const Unsupported& refused) {
    left.unsupported = refused.what();
  }
  return left;
}

TEST(RankTraining, IsCertifiedComparedAndTimedAndSomethingIsKeptOfEveryStep) {
  const auto steps = std::make_shared<Steps>();
  const LeftBehind left = run({}, steps);
  EXPECT_EQ(left.ranks.met, 1);
  for (const char* name : {"reference:certificate", "reference:logits", "samples:time"}) {
    ASSERT_NE(left.check(name), nullptr) << name;
    EXPECT_EQ(left.check(name)->outcome, syslab::Outcome::passed);
  }
  EXPECT_GT(steps->of->steps, 1);
  EXPECT_EQ(steps->of->drawn, steps->of->steps) << "new tokens for every step";
  for (std::size_t i = 0; i < steps->kept.size(); ++i) EXPECT_EQ(steps->kept[i], static_cast<int>(i) + 1);
  EXPECT_EQ(steps->kept.size(), static_cast<std::size_t>(steps->of->steps)) << "of the last step, too";
  EXPECT_EQ(left.metric("parameters"), 1000);
  EXPECT_EQ(left.metric("loss"), 1);
  EXPECT_NEAR(left.metric("tokens_per_second") * left.metric("time"), 16, 1e-9);
}

TEST(RankTraining, WhatCannotBeMeasuredHereMeetsNobody) {
  const LeftBehind left = run({.refusal = "no such precision"});
  EXPECT_EQ(left.unsupported, "no such precision");
  EXPECT_EQ(left.ranks.met, 0);
}

TEST(RankTraining, ACertificateThatDoesNotHoldIsACheckThatFailed) {
  const LeftBehind left = run({.check = [](device::Stream) -> std::vector<StepCheck> {
    throw Error(ErrorKind::check, "rank 1 has other bits");
  }});
  ASSERT_NE(left.check("reference:certificate"), nullptr);
  EXPECT_EQ(left.check("reference:certificate")->outcome, syslab::Outcome::falsified);
  EXPECT_NE(left.check_failed.find("rank 1 has other bits"), std::string::npos) << left.check_failed;
  EXPECT_EQ(left.check("samples:time"), nullptr) << "nothing was timed";
}

TEST(RankTraining, WhatElseGoesWrongInACheckIsNoAnswerOfTheCheck) {
  EXPECT_THROW(
      run({.check = [](device::Stream) -> std::vector<StepCheck> { throw Error(ErrorKind::comm, "rank 1 has left"); }}),
      Error);
}

TEST(RankTraining, ALossThatIsNoNumberIsWrong) {
  const auto steps = std::make_shared<Steps>();
  steps->of->loss_of_step = std::numeric_limits<double>::quiet_NaN();
  const LeftBehind left = run({}, steps);
  EXPECT_NE(left.check_failed.find("the mean over all rows is nan"), std::string::npos) << left.check_failed;
}

}  // namespace
}  // namespace syslab::worker
