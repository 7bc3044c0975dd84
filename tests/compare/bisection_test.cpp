#include "compare/bisection.hpp"

#include <gtest/gtest.h>

#include <set>

namespace syslab::cli {
namespace {

TEST(Bisection, FindsEachCommitOfSixtyFourInSixQuestions) {
  for (int culprit = 1; culprit <= 64; ++culprit) {
    Bisection search(64);
    int asked = 0;
    while (const auto next = search.next()) {
      ++asked;
      search.take(*next, *next < culprit ? Answer::good : Answer::bad);
    }
    EXPECT_LE(asked, 6);
    EXPECT_EQ(search.suspects(), std::vector{culprit});
    EXPECT_EQ(search.last_good(), culprit - 1);
  }
}

TEST(Bisection, WhatDoesNotAnswerIsAskedOnceAndStaysSuspect) {
  Bisection search(8);
  std::set<int> asked;
  while (const auto next = search.next()) {
    EXPECT_TRUE(asked.insert(*next).second) << *next << " twice";
    const bool silent = *next >= 3 && *next <= 5;
    search.take(*next, silent ? Answer::unknown : *next < 5 ? Answer::good : Answer::bad);
  }
  EXPECT_EQ(search.suspects(), (std::vector{3, 4, 5, 6}));
  EXPECT_EQ(search.questions_left(), 0);
}

// `--launches 50` was asked for and 20 were taken.
TEST(Bisection, AStepIsLookedAtUntilAllLaunchesThatWereAskedForAreThere) {
  EXPECT_EQ(looks_until(3), (std::vector{3}));
  EXPECT_EQ(looks_until(5), (std::vector{5}));
  EXPECT_EQ(looks_until(20), (std::vector{5, 10, 20}));
  EXPECT_EQ(looks_until(50), (std::vector{5, 10, 20, 40, 50}));
}

TEST(Bisection, NeighboursNeedNoQuestion) {
  const Bisection search(1);
  EXPECT_EQ(search.next(), std::nullopt);
  EXPECT_EQ(search.suspects(), std::vector{1});
}

}  // namespace
}  // namespace syslab::cli
