#include "cli/handout.hpp"

#include <gtest/gtest.h>

namespace syslab::cli {
namespace {

TEST(RestOfAHandout, IsRunWithTheFunctionsThatAnswerItsExperiment) {
  registry::Experiment experiment;
  experiment.id = "naive_ddp";
  experiment.accepts_mine = true;
  const auto mine = [](const char* function, const char* answers) {
    Submitted made = submitted_of("me", "/adapters.py", function);
    made.answers = {answers};
    return made;
  };
  Handout handout;
  handout.frame.mine = {mine("get_fsdp()", "fsdp"), mine("get_ddp()", "naive_ddp"), mine("get_flash()", "flash")};
  evidence::Step step{.experiment = &experiment};
  step.cases.push_back({.experiment = &experiment, .implementation = "me"});
  const plan::Plan rest = rest_of(handout, step, StoredEvidence());
  ASSERT_EQ(rest.mine.size(), 1U);
  EXPECT_EQ(rest.mine[0].inside(), "get_ddp()");
  EXPECT_EQ(rest.cases.size(), 1U);
  experiment.accepts_mine = false;
  EXPECT_TRUE(rest_of(handout, step, StoredEvidence()).mine.empty());
}

}  // namespace
}  // namespace syslab::cli
