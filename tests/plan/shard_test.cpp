#include "plan/shard.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"

namespace syslab::plan {
namespace {

Plan plan_of(int cases) {
  Plan plan;
  for (int i = 0; i < cases; ++i) {
    PlannedCase& planned = plan.cases.emplace_back();
    planned.index = i;
    planned.case_uid = std::to_string(i);
  }
  return plan;
}

std::vector<std::string> uids(const Plan& plan) {
  std::vector<std::string> all;
  for (const PlannedCase& planned : plan.cases) all.push_back(planned.case_uid);
  return all;
}

TEST(Shard, DealsOutNeighbours) {
  Plan plan = plan_of(7);
  keep_shard(plan, {2, 3});
  EXPECT_EQ(uids(plan), (std::vector<std::string>{"1", "4"}));
  EXPECT_EQ(plan.cases[1].index, 1);
}

TEST(Shard, AllTogetherAreEachCaseOnce) {
  for (const int cases : {0, 1, 5, 12}) {
    for (const int count : {1, 2, 5, 7}) {
      std::multiset<std::string> together;
      for (int index = 1; index <= count; ++index) {
        Plan plan = plan_of(cases);
        keep_shard(plan, {index, count});
        for (const std::string& uid : uids(plan)) together.insert(uid);
      }
      const std::vector<std::string> whole = uids(plan_of(cases));
      EXPECT_EQ(together, std::multiset<std::string>(whole.begin(), whole.end()));
    }
  }
}

TEST(Shard, CountsFromOne) {
  EXPECT_EQ(parse_shard("1/1").index, 1);
  const Shard last = parse_shard("8/8");
  EXPECT_EQ(last.index, 8);
  EXPECT_EQ(last.count, 8);
  for (const char* wrong : {"", "3", "0/8", "9/8", "1/0", "-1/8", "1/8 ", "1 of 8", "/8", "1/", "a/b", "1/8/2"}) {
    EXPECT_THROW(parse_shard(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace syslab::plan
