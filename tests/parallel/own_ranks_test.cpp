// The laws of data parallelism on our own strategies: they hold, and a strategy that is taken for another is found.
#include "experiments/ddp/own_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "property_tests/data_parallel/laws.hpp"

namespace syslab {
namespace {

using data_parallel::Strategy;

// Of each law that our own are asked, how it ended.
std::map<std::string, check::LawResult> searched(const std::vector<check::Law>& laws,
                                                 const std::vector<LawInfo>& list) {
  std::map<std::string, check::LawResult> found;
  for (const LawInfo& info : list) {
    if (info.bound == LawInfo::Bound::handed_in) continue;
    for (const check::Law& law : laws) {
      if (law.id == info.id) found[law.id] = law.search({.max_success = 20});
    }
  }
  return found;
}

std::map<std::string, check::LawResult> searched(Strategy promised, Strategy done) {
  return searched(data_parallel::laws(promised, own_ranks(train_replicated(done))), data_parallel::law_list(promised));
}

void expect_only(const std::map<std::string, check::LawResult>& found, const std::vector<std::string>& falsified) {
  EXPECT_FALSE(found.empty());
  for (const auto& [id, result] : found) {
    const bool wrong = std::ranges::count(falsified, id) > 0;
    EXPECT_EQ(result.outcome, wrong ? check::Outcome::falsified : check::Outcome::passed)
        << id << ": " << result.message;
  }
}

TEST(OwnRanks, KeepTheLawsOfTheirStrategy) {
  for (const Strategy strategy : {Strategy::naive, Strategy::flat, Strategy::individual, Strategy::bucketed}) {
    const auto found = searched(strategy, strategy);
    EXPECT_GE(found.size(), 8U);
    expect_only(found, {});
  }
  const auto optimizer =
      searched(data_parallel::sharded::laws(own_ranks(train_sharded_optimizer())), data_parallel::sharded::law_list());
  EXPECT_EQ(optimizer.size(), 10U);
  expect_only(optimizer, {});
  const auto sharded = searched(data_parallel::fully_sharded::laws(own_ranks(train_fully_sharded())),
                                data_parallel::fully_sharded::law_list());
  EXPECT_EQ(sharded.size(), 4U);
  expect_only(sharded, {});
}

TEST(OwnRanks, AStrategyThatIsTakenForAnotherIsFoundByItsMessages) {
  expect_only(searched(Strategy::flat, Strategy::naive), {"ddp.messages"});
  expect_only(searched(Strategy::naive, Strategy::flat), {"ddp.messages"});
  expect_only(searched(Strategy::individual, Strategy::naive), {"ddp.overlaps"});
}

TEST(OwnRanks, ACounterexampleIsSmallAndComesAgain) {
  const std::vector<check::Law> laws =
      data_parallel::laws(Strategy::individual, own_ranks(train_replicated(Strategy::naive)));
  for (const check::Law& law : laws) {
    if (law.id != "ddp.overlaps") continue;
    const check::LawResult found = law.search({.max_success = 20});
    ASSERT_EQ(found.outcome, check::Outcome::falsified);
    EXPECT_EQ(found.counterexample.at("further layers"), "0");
    EXPECT_NE(found.message.find("behind the backward pass"), std::string::npos) << found.message;
    EXPECT_EQ(law.search({.reproduce = found.reproduce}).outcome, check::Outcome::falsified);
  }
}

}  // namespace
}  // namespace syslab
