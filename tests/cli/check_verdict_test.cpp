#include "cli/check_verdict.hpp"

#include <gtest/gtest.h>

namespace syslab::cli {
namespace {

TEST(HandoutVerdict, PassesWhereAllHeldInEnoughTries) {
  EXPECT_STREQ(verdict_of({.of = 3, .tried = 3, .held = 3}), "PASS");
}

// A hand-in that only waits is tried once a law in its time: that is no pass, and accuses nobody.
TEST(HandoutVerdict, IsNoneWhereAllThatIsNotWrongHeldBarely) {
  EXPECT_STREQ(verdict_of({.of = 3, .tried = 3, .held = 2, .barely = 1}), "NOT CHECKED");
  EXPECT_STREQ(verdict_of({.of = 3, .tried = 3, .held = 0, .barely = 3}), "NOT CHECKED");
  EXPECT_STREQ(verdict_of({.of = 3}), "NOT CHECKED");
}

TEST(HandoutVerdict, FailsWhereOneIsWrongOrWasNotDecided) {
  EXPECT_STREQ(verdict_of({.of = 3, .tried = 3, .held = 2, .wrong = true}), "FAIL");
  EXPECT_STREQ(verdict_of({.of = 3, .tried = 3, .held = 1, .barely = 1, .wrong = true}), "FAIL");
  EXPECT_STREQ(verdict_of({.of = 3, .tried = 2, .held = 1, .barely = 1}), "FAIL");
}

TEST(NothingChecked, IsSaidWhereAllCasesWereLookedAtAndNoneWasTried) {
  EXPECT_EQ(nothing_checked("me", 4, 4, 0), "me: nothing was checked: all its 4 cases were skipped or unsupported");
  EXPECT_EQ(nothing_checked("me", 1, 1, 0), "me: nothing was checked: its only case was skipped or unsupported");
  EXPECT_EQ(nothing_checked("me", 4, 4, 1), "");
  EXPECT_EQ(nothing_checked("me", 4, 1, 0), "") << "of a run that was interrupted nobody knows";
  EXPECT_EQ(nothing_checked("me", 0, 0, 0), "");
}

TEST(RanksOnGpus, AreThoseOfAPythonClass) {
  plan::Plan plan;
  plan.mine = {{.name = "me", .path = "/x.py", .python_class = "Mine"}, {.name = "library", .path = "/x.so"}};
  const auto puts = [&](const char* implementation, const char* device, const char* law, int ranks) {
    plan.cases.resize(1);
    plan.cases[0].implementation = implementation;
    plan.cases[0].device = device;
    plan.cases[0].law = law;
    plan.cases[0].world_size = ranks;
    return puts_ranks_on_gpus(plan);
  };
  EXPECT_TRUE(puts("me", "cuda", "ddp.waits", 1));
  EXPECT_TRUE(puts("me", "cuda", "", 2));
  EXPECT_FALSE(puts("me", "cuda", "attention.repeats", 1));
  EXPECT_FALSE(puts("me", "cpu", "ddp.waits", 1));
  EXPECT_FALSE(puts("naive", "cuda", "ddp.waits", 1)) << "ours";
  EXPECT_FALSE(puts("library", "cuda", "", 2)) << "a library has no sockets";
}

}  // namespace
}  // namespace syslab::cli
