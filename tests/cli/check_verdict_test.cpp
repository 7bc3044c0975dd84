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

}  // namespace
}  // namespace syslab::cli
