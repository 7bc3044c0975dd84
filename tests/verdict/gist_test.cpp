#include "verdict/gist.hpp"

#include <gtest/gtest.h>

namespace syslab::verdict {
namespace {

TEST(Gist, IsTheCauseWhateverTheMessageSays) {
  EXPECT_EQ(gist({.kind = FindingKind::wrong_value, .cause = "no mask at all"}, "out[0]: 1\nmore"), "no mask at all");
}

TEST(Gist, OfAChangedInputIsWhichOne) {
  EXPECT_EQ(gist({.kind = FindingKind::input_changed, .about = "q"}, "8 of 32 elements"),
            "the call changed its input 'q'");
  EXPECT_EQ(gist({.kind = FindingKind::wrong_value, .about = "q"}, "8 of 32 elements"), "8 of 32 elements");
}

TEST(Gist, IsElseTheFirstLineWhateverStandsBelow) {
  EXPECT_EQ(gist({}, "raised\nlooks like no mask: it"), "raised");
  EXPECT_EQ(gist({}, ""), "");
}

TEST(SameCounterexample, HasTheSameInputAndElement) {
  const Finding one{.input = "B=1", .first_wrong = "out[0]"};
  EXPECT_TRUE(same_counterexample(one, one));
  EXPECT_FALSE(same_counterexample(one, {.input = "B=2", .first_wrong = "out[0]"}));
  EXPECT_FALSE(same_counterexample(one, {.input = "B=1", .first_wrong = "out[1]"}));
  EXPECT_FALSE(same_counterexample({.input = "B=1"}, {.input = "B=1"})) << "no element is known";
  EXPECT_FALSE(same_counterexample({}, {}));
}

TEST(SameFindings, HaveOneNameByGistOrByCounterexample) {
  SameFindings same;
  const Finding one{.kind = FindingKind::wrong_value, .input = "S=3", .first_wrong = "out[0]"};
  const std::string name = same.name_of("me", one, "out differs");
  EXPECT_EQ(name, "me: out differs");
  EXPECT_EQ(same.name_of("me", one, "rows do not sum to one"), name);
  EXPECT_EQ(same.name_of("me", {}, "out differs\nmore"), name);
  EXPECT_EQ(same.name_of("me", {.input = "S=4", .first_wrong = "out[0]"}, "other"), "me: other");
  EXPECT_EQ(same.name_of("you", one, "out differs"), "you: out differs");
}

}  // namespace
}  // namespace syslab::verdict
