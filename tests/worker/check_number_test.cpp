#include "worker/wire/check_number.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <variant>
#include <vector>

namespace syslab::worker {
namespace {

struct Found {
  std::vector<CheckRecord> checks;
  bool failed = false;
};

Found check(double found, double expected, double tolerance) {
  Found result;
  CaseContext context({}, [&](const Record& record) { result.checks.push_back(std::get<CheckRecord>(record)); });
  try {
    check_number(context, "reference:sum", found, expected, tolerance, "the sum, in another order");
  } catch (const CheckFailed&) {
    result.failed = true;
  }
  return result;
}

TEST(CheckNumber, PassesWithinTheToleranceAndTellsTheDistance) {
  const Found result = check(10.5, 10, 0.5);
  EXPECT_FALSE(result.failed);
  ASSERT_EQ(result.checks.size(), 1U);
  EXPECT_EQ(result.checks[0].outcome, Outcome::passed);
  EXPECT_EQ(result.checks[0].name, "reference:sum");
  EXPECT_EQ(result.checks[0].worst_error, 0.5);
  EXPECT_EQ(result.checks[0].tolerance, 0.5);
}

TEST(CheckNumber, FailsBeyondItWithBothNumbersInTheMessage) {
  const Found result = check(10.75, 10, 0.5);
  EXPECT_TRUE(result.failed);
  ASSERT_EQ(result.checks.size(), 1U);
  EXPECT_EQ(result.checks[0].outcome, Outcome::falsified);
  EXPECT_EQ(result.checks[0].message, "the sum, in another order: 10.75, where 10 was expected");
}

TEST(CheckNumber, NoNumberIsNearNothingAndInfinityIsItself) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(check(std::nan(""), 0, 1e300).failed);
  EXPECT_TRUE(check(0, std::nan(""), 1e300).failed);
  EXPECT_FALSE(check(infinity, infinity, 0).failed);
  EXPECT_TRUE(check(infinity, 1, 1e300).failed);
}

}  // namespace
}  // namespace syslab::worker
