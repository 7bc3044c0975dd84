#include "session/stored_evidence.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json_text.hpp"
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
  plan.mine = {{.name = "me", .path = "/adapters.py", .digest = "1", .answers = {"toy"}, .sources = "before"}};

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

}  // namespace
}  // namespace syslab::cli
