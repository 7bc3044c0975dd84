#include "session/stored_evidence.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/build_info.hpp"
#include "core/text/json_text.hpp"
#include "runner/environment.hpp"
#include "session/session.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::cli {
namespace {

using namespace store::test;

// What is written in adapters.py calls the project's other files: an edit there asks anew.
TEST(StoredEvidence, OfAFunctionCountsWhileItsProjectIsAsItWas) {
  const Folder folder;
  store::Store store = store::Store::open(folder / "a.db", store::Mode::create);
  registry::Experiment experiment;
  experiment.id = "toy";
  experiment.accepts_mine = true;
  plan::Plan plan;
  plan.mine = {submitted_of("me", "/adapters.py", "toy")};
  plan.mine[0].digest = "1";
  plan.mine[0].answers = {"toy"};
  plan.mine[0].sources = "before";

  store::PlanRow law = a_law(0, "toy.law", "me");
  law.implementation = {.name = "me", .digest = "1", .language = "Python", .is_mine = true, .path = "/adapters.py:f()"};
  store::RunRow run = a_run();
  run.protocol_json = json_text(to_json(to_conditions({.protocol = "quick"}, plan, false)));
  store::AttemptRow attempt;
  attempt.records = {a_check()};
  store.finish_attempt(store.begin_run(run, {law}), attempt);

  plan::PlannedCase planned{.experiment = &experiment, .implementation = "me"};
  planned.task = plan::Task::law;
  planned.law = law.law;
  planned.case_uid = law.case_uid;
  const StoredEvidence stored(store, std::chrono::minutes(10));
  EXPECT_TRUE(stored.holds(planned, plan));
  plan.mine[0].sources = "after";
  EXPECT_FALSE(stored.holds(planned, plan));
}

// Of what somebody else says that it failed on this kind of machine.
TEST(StoredEvidence, AFailureThatWasMergedIsTriedAgain) {
  const Folder folder;
  registry::Experiment experiment;
  experiment.id = "toy";
  const plan::Plan plan;
  const store::PlanRow law = a_law(0, "toy.law", "naive");
  store::RunRow run = a_run();
  run.environment_json = json_text(runner::environment_facts());
  run.comparability_key = runner::comparability_key(runner::environment_facts());
  run.build_json = json_text(to_json(build_info()));
  store::AttemptRow attempt;
  attempt.status = Status::error;
  {
    store::Store theirs = store::Store::open(folder / "theirs.db", store::Mode::create);
    theirs.finish_attempt(theirs.begin_run(run, {law}), attempt);
  }
  store::Store ours = store::Store::open(folder / "ours.db", store::Mode::create);
  plan::PlannedCase planned{.experiment = &experiment, .implementation = "naive"};
  planned.task = plan::Task::law;
  planned.law = law.law;
  planned.case_uid = law.case_uid;
  for (const bool trusted : {false, true}) {
    ours.merge(folder / "theirs.db", {.trusted = trusted});
    EXPECT_EQ(StoredEvidence(ours, std::chrono::minutes(10)).failed_here(planned, plan), trusted);
  }
}

}  // namespace
}  // namespace syslab::cli
