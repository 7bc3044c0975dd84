#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "runner/budget.hpp"

namespace syslab::runner {
namespace {

registry::Experiment experiment() {
  registry::Experiment made;
  made.id = "attention";
  return made;
}

class Falsified : public ::testing::Test {
 protected:
  plan::PlannedCase law(Contract contract, const char* implementation = "me") const {
    plan::PlannedCase made;
    made.experiment = &experiment_;
    made.implementation = implementation;
    made.task = Task::law;
    made.law = "attention.repeats";
    made.params = Params{{"contract", std::string(to_string(contract))}};
    return made;
  }
  plan::PlannedCase timed(const char* implementation = "me") const {
    plan::PlannedCase made;
    made.experiment = &experiment_;
    made.implementation = implementation;
    made.task = Task::measure;
    return made;
  }
  static AttemptResult ended(const plan::PlannedCase& planned, Status status) {
    AttemptResult result;
    result.planned = &planned;
    result.status = status;
    return result;
  }

  const registry::Experiment experiment_ = experiment();
};

TEST_F(Falsified, WhatFailsALawOfTheHandOutGetsNoTimeAndOthersDo) {
  const plan::PlannedCase law = this->law(Contract::handout);
  plan::Plan plan;
  plan.cases = {law, timed(), timed("other")};
  FalsifiedLaws laws(plan);
  EXPECT_FALSE(laws.forbid(plan.cases[1]));
  laws.note(ended(law, Status::error));
  EXPECT_FALSE(laws.forbid(plan.cases[1])) << "nothing was found";
  laws.note(ended(law, Status::check_failed));
  ASSERT_TRUE(laws.forbid(plan.cases[1]));
  EXPECT_FALSE(laws.forbid(plan.cases[2]));
  EXPECT_FALSE(laws.forbid(law)) << "other laws are tried";
  const AttemptResult skipped = laws.skipped(plan.cases[1]);
  EXPECT_EQ(skipped.status, Status::skipped);
  EXPECT_EQ(parse_json(skipped.facts_json)["falsified_law"]["name"], "attention.repeats");
}

TEST_F(Falsified, BeyondTheHandOutDecidesWhereItAsksNothing) {
  const plan::PlannedCase beyond = law(Contract::full);
  plan::Plan plan;
  plan.cases = {law(Contract::handout), beyond, timed()};
  FalsifiedLaws warned(plan);
  warned.note(ended(beyond, Status::check_failed));
  EXPECT_FALSE(warned.forbid(plan.cases[2])) << "a warning";
  plan.cases = {beyond, timed()};
  FalsifiedLaws decided(plan);
  decided.note(ended(beyond, Status::check_failed));
  EXPECT_TRUE(decided.forbid(plan.cases[1]));
}

TEST_F(Falsified, ARunThatGoesOnRemembers) {
  plan::Plan plan;
  plan.falsified = {law(Contract::handout)};
  plan.cases = {timed()};
  EXPECT_TRUE(FalsifiedLaws(plan).forbid(plan.cases[0]));
}

}  // namespace
}  // namespace syslab::runner
