#include "compare/side_build.hpp"

#include <gtest/gtest.h>

#include "registry/registry.hpp"
#include "session/command_selection.hpp"

namespace syslab::cli {
namespace {

// A case of `experiment`, whose version is 1, with an axis `reads`.
plan::PlannedCase case_of(const registry::Experiment& experiment) {
  plan::PlannedCase planned;
  planned.experiment = &experiment;
  planned.implementation = "me";
  planned.params.set("reads", std::string("took {} ms"));
  return planned;
}

SideBuild other_build(const std::string& experiment) {
  SideBuild build = this_build();
  build.path = "old/syslab";
  build.experiments[experiment].version = "1";
  return build;
}

std::vector<std::string> differences_at(const std::string& id) {
  registry::Experiment experiment;
  experiment.id = id;
  experiment.version = "1";
  return differing(other_build(id), case_of(experiment), this_build(), case_of(experiment));
}

TEST(SideBuild, AxesOfCommandsAndFunctionsNeedNoBuildThatListsThem) {
  EXPECT_EQ(differences_at(std::string(kCommandExperiment)), std::vector<std::string>{});
  EXPECT_EQ(differences_at("function"), std::vector<std::string>{});
}

TEST(SideBuild, AnAxisOfOursThatTheOtherBuildDoesNotListKeepsThemApart) {
  EXPECT_EQ(differences_at("flash_forward"), std::vector<std::string>{"axis reads: side A does not have it"});
}

}  // namespace
}  // namespace syslab::cli
